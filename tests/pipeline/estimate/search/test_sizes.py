"""How many accelerators a question needs, and which shapes near a model's run better."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweepscope.pipeline.estimate.search.near_shapes import NEAR, changes, near_shapes
from sweepscope.pipeline.estimate.search.search import OUT_OF_MEMORY, search
from sweepscope.pipeline.estimate.search.sizes import SECONDS_PER_DAY, doublings, enough, fewest, size_table, sizes
from sweepscope.pipeline.reference.models import LLAMA_2_7B, find_model, known_models, shape_of
from tests.pipeline.estimate.search.test_search import request

LARGE = find_model("Llama 3 70B")
assert LARGE is not None


def test_each_size_is_the_fastest_of_its_own_search() -> None:
    asked = request(gpus=8, gbs=64)
    for size in sizes(asked, [8, 32]):
        best = search(replace(asked, num_gpus=size.num_gpus), top=1).layouts.row(0, named=True)
        assert size.tokens_per_s == pytest.approx(size.num_gpus * best["est_tokens_per_s_per_gpu"])
        assert size.days(1e9) == pytest.approx(1e9 / size.tokens_per_s / SECONDS_PER_DAY)
        assert size.gpu_hours(1e9) == pytest.approx(24 * size.num_gpus * size.days(1e9))


def test_a_size_without_a_layout_says_why_and_takes_forever() -> None:
    small, odd, large = sizes(request(shape_of(LARGE), gbs=64), [8, 8 * 97, 256])
    assert (small.row, small.reason) == (None, OUT_OF_MEMORY)
    assert odd.row is None
    assert odd.reason
    assert small.days(1.0) == float("inf")
    table = size_table([small, odd, large], 1e12)
    assert table["mfu"].is_null().to_list() == [True, True, False]
    assert table["scaling_efficiency"][2] == 1.0  # of the smallest that fits


def test_the_fewest_that_meet_a_target() -> None:
    asked = request(gpus=8, gbs=512)
    found = list(enough(asked, 1e12, 60.0))
    chosen = fewest(found, 1e12, 60.0)
    assert chosen is not None
    assert chosen.days(1e12) <= 60.0
    assert all(size.days(1e12) > 60.0 for size in found if size.num_gpus < chosen.num_gpus)
    assert [size.num_gpus for size in found] == sorted(size.num_gpus for size in found)


def test_a_target_out_of_reach_ends_where_more_are_slower_or_nothing_divides() -> None:
    found = list(enough(request(gpus=8, gbs=16), 1e15, 1.0))
    assert fewest(found, 1e15, 1.0) is None
    fitting = [size.tokens_per_s for size in found if size.row]
    assert fitting
    assert max(fitting) in fitting[-2:]


def test_a_range_keeps_its_end() -> None:
    assert doublings(8, 8) == [8]
    assert doublings(8, 100) == [8, 16, 32, 64, 100]


@pytest.mark.parametrize("model", known_models())
def test_near_shapes_are_near_and_are_models(model: str) -> None:
    row = find_model(model)
    assert row is not None
    shape = shape_of(row)
    for words, other in changes(shape):
        assert other != shape, words
        assert abs(other.params / shape.params - 1) < 3 * NEAR, words
        assert other.head_dim or other.hidden_size % other.num_heads == 0, words
        assert other.num_heads % other.num_kv_heads == 0, words


def test_llama_s_126_layers_are_found_from_128() -> None:
    large = find_model("Llama 3.1 405B")
    assert large is not None
    assert "126 layers for 128" in dict(changes(replace(shape_of(large), num_layers=128)))


def test_heads_that_no_tensor_group_divides_gain_most_by_dividing() -> None:
    """25 heads leave one rank per tensor group: what cannot be split needs more memory or a pipeline."""
    odd = replace(LLAMA_2_7B, num_heads=50, num_kv_heads=50, hidden_size=6400, ffn_hidden_size=17152, num_layers=60)
    asked = request(odd, gpus=64, gbs=64)
    found = near_shapes(asked, margin=0.05, by="physics")
    assert [one.gain for one in found] == sorted((one.gain for one in found), reverse=True)
    base = search(asked, top=1, by="physics").layouts["est_mfu"][0]
    for one in found:
        if "vocabulary" not in one.change:
            assert one.size.mfu == pytest.approx(base * (1 + one.gain))
    assert any("48 heads" in one.change and one.gain > 0 for one in found)


def test_a_model_that_does_not_fit_has_no_near_shapes() -> None:
    assert near_shapes(request(shape_of(LARGE), gpus=8, gbs=64), margin=0.05, by="physics") == []
