"""Kinds of layouts over sizes and batches: each point the best of its kind, each flip where the figures have it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.search.search import MARGIN, search
from sweepscope.pipeline.estimate.search.switch_points import (
    CONDITIONS,
    KINDS,
    fastest_of_each_kind,
    flips_over_gpus,
    kinds_of,
    least_batch,
    over_batches,
    over_gpus,
)
from sweepscope.pipeline.reference.models import find_model, shape_of
from tests.pipeline.estimate.search.test_search import request

LLAMA = find_model("Llama 3 8B")
assert LLAMA is not None
ASKED = request(shape_of(LLAMA), gpus=64, gbs=256)


@pytest.fixture(scope="module")
def sized() -> pl.DataFrame:
    return over_gpus(ASKED, [8 * 2**power for power in range(11)])


def test_a_kind_is_what_a_layout_uses() -> None:
    at = Layouts.of(tp=np.array([1.0, 8.0, 8.0, 16.0, 1.0]), pp=np.array([1.0, 1.0, 4.0, 4.0, 2.0]))
    assert [list(KINDS)[kind] for kind in kinds_of(at, 8)] == ["data", "tensor", "pipeline", "tensor_out", "pipeline"]


def test_the_best_of_all_kinds_is_the_best_of_a_search() -> None:
    rows = fastest_of_each_kind(ASKED)
    assert rows["kind"].is_unique().all()
    best = search(ASKED, top=1, by="physics").layouts.row(0, named=True)
    assert rows["est_tokens_per_s_per_gpu"].max() == pytest.approx(best["est_tokens_per_s_per_gpu"])
    room = (1 - MARGIN) * ASKED.asked.cluster.memory_bytes - ASKED.asked.profile.outside_bytes
    assert (rows["est_mem_reserved_bytes"] <= room * (1 + 1e-9)).all()


def test_flips_are_where_the_figures_have_them(sized: pl.DataFrame) -> None:
    counts = sorted(set(sized["num_gpus"].to_list()))
    flips = {flip.condition: flip.value for flip in flips_over_gpus(sized, counts, 256, 8)}
    assert list(flips) == list(CONDITIONS)
    assert flips["fits"] == 8
    assert flips["batch_short"] == 512  # 256 sequences
    mfu = {(row["num_gpus"], row["kind"]): row["est_mfu"] for row in sized.iter_rows(named=True)}

    def ahead(count: int) -> bool:
        flat = max(mfu.get((count, kind), 0.0) for kind in ("data", "tensor"))
        return mfu.get((count, "pipeline"), 0.0) > flat

    first = flips["pipeline_pays"]
    assert first is not None
    assert all(ahead(count) for count in counts if count >= first)
    assert not ahead(counts[counts.index(first) - 1])


def test_nothing_that_fits_flips_nothing() -> None:
    large = find_model("Llama 3.1 405B")
    assert large is not None
    asked = request(shape_of(large), gpus=8, gbs=64)
    rows = over_gpus(asked, [8, 16])
    assert rows.is_empty()
    flips = {flip.condition: flip.value for flip in flips_over_gpus(rows, [8, 16], 64, 8)}
    assert set(flips.values()) == {None}


def test_a_larger_batch_restores_efficiency_from_the_smallest_that_does_on() -> None:
    batches = [16 * 2**power for power in range(8)]
    rows = over_batches(replace(ASKED, num_gpus=512), batches)
    base = float(over_gpus(ASKED, [8])["est_mfu"].max())  # type: ignore[arg-type]  # of floats
    least = least_batch(rows, base)
    assert least is not None
    best = {
        tokens: rows.filter(gbs_tokens=tokens)["est_mfu"].max() for tokens in sorted(set(rows["gbs_tokens"].to_list()))
    }
    assert all(value >= 0.9 * base for tokens, value in best.items() if tokens >= least)
    assert all(value < 0.9 * base for tokens, value in best.items() if tokens == least // 2)
    assert least_batch(rows, 10.0) is None
