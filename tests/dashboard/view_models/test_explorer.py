"""What the Explorer asks and shows: defaults out of the store, breakdowns that add up, neighbours by distance."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import polars as pl
import pytest

from sweepscope.dashboard.selection.options import MOST_LISTED
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.view_models import explorer, explorer_layout
from sweepscope.dashboard.view_models.explorer import Setup
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.estimate.rows.estimate_rows import predict
from sweepscope.pipeline.estimate.rows.read_rows import read_rows
from sweepscope.pipeline.estimate.search.whatif import Choice
from sweepscope.pipeline.reference.clusters import Precision
from sweepscope.pipeline.reference.models import find_model, shape_of
from tests.dashboard.store_rows import run_row

LLAMA = shape_of(find_model("Llama 3 8B") or {})
SETUP = Setup("Llama 3 8B", LLAMA, "H100-SXM-80GB", 2, 8192, 16 * 8192)
USUAL: dict[str, Any] = {
    "model": "Llama 3 8B",
    "accelerator": "H100-SXM-80GB",
    "num_nodes": 4,
    "gpus_per_node": 8,
    "seq_len": 4096,
    "gbs_tokens": 2**20,
    "framework": "nanotron",
    "origin": "measured",
    "runs": 10,
}


def setups(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([USUAL | row for row in rows], schema_overrides={"gbs_tokens": pl.Int64})


def test_a_setup_becomes_a_request() -> None:
    request = SETUP.request(choose_profile)
    assert (request.num_gpus, request.gbs) == (16, 16)
    assert request.asked.profile.name == "hopper"
    # What a framework usually does counts as it does for `sweepscope search`.
    captured = replace(SETUP, framework="mlperf").request(choose_profile).asked.profile
    assert captured.kernel_launch_s == captured.graph_launch_s < request.asked.profile.kernel_launch_s
    with pytest.raises(KeyError):
        Setup("m", LLAMA, "Abacus", 1, 1, 1).request(choose_profile)


@pytest.mark.parametrize(
    ("accelerator", "precision", "framework", "constants"),
    [
        ("B200-SXM-180GB", "bf16", "megatron", "blackwell"),  # fitted to the machine of one source
        ("B200-SXM-180GB", "fp4", "megatron", "blackwell"),
        ("A100-SXM-80GB", "bf16", "megatron", "ampere"),  # fitted to attention that is not fused
        ("A100-SXM-80GB", "bf16", "composer", "ampere-composer"),
    ],
)
def test_constants_are_for_what_they_were_fitted_on(
    accelerator: str, precision: Precision, framework: str, constants: str
) -> None:
    setup = replace(SETUP, accelerator=accelerator, framework=framework, precision=precision)
    assert setup.request(choose_profile).asked.profile.name == constants


@pytest.mark.parametrize(
    "stated",
    [{"torch_version": None}, {"torch_version": "2.12.0"}, {"torch_version": "2.4.1", "framework_version": "2.0"}],
)
def test_a_layout_has_one_estimate_whether_it_was_run_or_not(stated: dict[str, Any]) -> None:
    """Runs were estimated with the kernels of their year, and the fastest layout beside them with those of 2024."""
    layout = {"dp": 16, "tp": 1, "pp": 1, "cp": 1, "ep": 1, "zero_stage": 1, "mbs": 2, "gas": 4, "recompute": "none"}
    shape = {name: value for name, value in (find_model("Llama 3 8B") or {}).items() if name in run_row()}
    named = {
        "accelerator": "H100-SXM-80GB",
        "framework": "other",
        "gbs_tokens": 128 * 4096,
        "seq_len": 4096,
        "gbs": 128,
    }
    at = {"framework_version": None, "started_at": datetime(2026, 11, 9), **stated}
    run = run_row(**{**shape, **layout, **named, **at}, precision="bf16")
    of = explorer.newest_software(pl.DataFrame([run]), "other")
    setup = Setup("Llama 3 8B", LLAMA, "H100-SXM-80GB", 2, 4096, 128 * 4096, "other", software=of)
    answer = explorer_layout.answer_for(setup.request(choose_profile), Choice(mbs=2, zero_stage=1))
    estimated = predict(read_rows(pl.DataFrame([run], infer_schema_length=None)))
    assert answer.step_time_s == pytest.approx(estimated["est_step_time_s"][0])


def test_the_newest_software_is_that_of_the_framework_where_it_ran() -> None:
    schema = {"framework": pl.String, "framework_version": pl.String, "torch_version": pl.String}
    rows = pl.DataFrame(
        [
            {"framework": "nemo", "framework_version": "24.09", "torch_version": None},
            {"framework": "torchtitan", "framework_version": None, "torch_version": "2.8.0"},
            {"framework": "torchtitan", "framework_version": None, "torch_version": "nightly"},
        ],
        schema=schema,
    ).with_columns(started_at=pl.lit(None, pl.Datetime))
    assert explorer.newest_software(rows, "nemo") == (2024.7, None)
    assert explorer.newest_software(rows, "litgpt") == (2025.6, "2.8.0")
    assert explorer.newest_software(rows.clear(), "nemo") == explorer.UNKNOWN_SOFTWARE


def test_the_first_question_is_the_one_with_most_runs() -> None:
    rows = setups({}, {"model": "Abacus 1B"}, {"num_nodes": 8})
    start = explorer.default_setup(rows, {"Llama 3 8B": LLAMA}, {"model": None})
    assert (start["num_nodes"], start["framework"]) == (4, "nanotron")


def test_a_named_model_counts_more_than_a_named_scale() -> None:
    rows = setups({}, {"model": "Llama 3 70B", "num_nodes": 64}, {"num_nodes": 8})
    models = {"Llama 3 8B": LLAMA, "Llama 3 70B": LLAMA}
    start = explorer.default_setup(rows, models, {"model": "Llama 3 70B", "num_nodes": 8})
    assert start["num_nodes"] == 64
    assert explorer.default_setup(rows, models, {"model": "Llama 3 8B", "num_nodes": 8})["num_nodes"] == 8


def test_the_first_question_is_of_the_grid_that_pages_begin_with() -> None:
    rows = setups(
        {"origin": "measured", "accelerator": "MI300X", "seq_len": 128},
        {"origin": "published", "gbs_tokens": 2**18, "num_nodes": 64, "runs": 900},
        {"origin": "measured", "gbs_tokens": 2**18, "num_nodes": 2, "runs": 1},
    )
    models = {"Llama 3 8B": LLAMA}
    grid = Slice("measured", "H100-SXM-80GB", 4096, 2**18)
    assert explorer.default_setup(rows, models, explorer.wanted({"model": None}, grid))["num_nodes"] == 2
    # what the address names counts more than the grid
    asked = {"model": None, "accelerator": "MI300X", "num_nodes": None}
    assert explorer.default_setup(rows, models, explorer.wanted(asked, grid))["seq_len"] == 128
    assert explorer.default_setup(rows, models, explorer.wanted({"num_nodes": 64}, grid))["num_nodes"] == 64
    assert explorer.wanted({"model": None}, None) == {}


@pytest.mark.parametrize("model", ["Llama 3 8B", "Llama 3 70B"])
def test_choosing_nodes_chooses_no_other_card(model: str) -> None:
    """A model without runs on so many nodes got the card, sequence and batch of whichever model had some."""
    rows = setups({}, {"model": "Abacus 1B", "num_nodes": 32, "accelerator": "V100-SXM-32GB", "seq_len": 2048})
    models = {"Llama 3 8B": LLAMA, "Abacus 1B": LLAMA, "Llama 3 70B": LLAMA}
    asked = {"model": model, "accelerator": None, "num_nodes": None}
    start, usual = explorer.start_setups(rows, models, asked, None)
    assert start == usual
    assert start["accelerator"] == "H100-SXM-80GB"
    assert explorer.start_setups(rows, models, {**asked, "num_nodes": 32}, None) == (start, usual)


def test_nodes_choose_among_the_runs_of_the_model_on_its_card() -> None:
    rows = setups({}, {"num_nodes": 8, "gbs_tokens": 2**22}, {"num_nodes": 8, "accelerator": "A100-SXM-80GB"})
    asked = {"model": "Llama 3 8B", "accelerator": None, "num_nodes": 8}
    start, usual = explorer.start_setups(rows, {"Llama 3 8B": LLAMA}, asked, None)
    assert (start["num_nodes"], start["gbs_tokens"], start["accelerator"]) == (8, 2**22, "H100-SXM-80GB")
    assert usual["num_nodes"] == 4


def test_without_runs_the_first_question_is_a_known_model() -> None:
    start = explorer.default_setup(setups({"accelerator": "CPU"}), {"Llama 3 8B": LLAMA}, {})
    assert (start["model"], start["accelerator"]) == ("Llama 3 8B", "H100-SXM-80GB")


def test_runs_of_an_unknown_model_lend_their_conditions_to_a_known_one() -> None:
    rows = setups({"model": "6.74B", "num_nodes": 2, "seq_len": 2048, "gbs_tokens": 2**20, "framework": "other"})
    start = explorer.default_setup(rows, {"Llama 3 8B": LLAMA}, {})
    assert (start["model"], start["framework"]) == ("Llama 3 8B", None)
    assert (start["num_nodes"], start["seq_len"], start["gbs_tokens"]) == (2, 2048, 2**20)


def test_models_of_the_store_come_before_the_registrys() -> None:
    own = explorer.store_models(
        pl.DataFrame(
            [
                {
                    "model": "Home 1B",
                    "num_layers": 16,
                    "hidden_size": 2048,
                    "num_heads": 32,
                    "num_kv_heads": 8,
                    "ffn_hidden_size": 8192,
                    "gated_mlp": True,
                    "vocab_size": 50_000,
                    "tie_word_embeddings": True,
                },
                {
                    "model": "Nameless",
                    "num_layers": None,
                    "hidden_size": None,
                    "num_heads": None,
                    "num_kv_heads": None,
                    "ffn_hidden_size": None,
                    "gated_mlp": None,
                    "vocab_size": None,
                    "tie_word_embeddings": None,
                },
            ]
        )
    )
    assert list(own) == ["Home 1B"]
    assert own["Home 1B"].num_kv_heads == 8
    offered = explorer.offered_models(own)
    assert next(iter(offered)) == "Home 1B"
    assert offered["Llama 3 8B"] == LLAMA


def test_of_very_many_models_the_first_are_listed_and_the_registrys_and_the_one_asked_for() -> None:
    models = {f"m{at}": LLAMA for at in range(MOST_LISTED + 9)} | {"Llama 3 8B": LLAMA}
    listed = explorer.listed_models(models, "m1005")
    assert listed == [*list(models)[:MOST_LISTED], "Llama 3 8B", "m1005"]


def test_batches_are_whole_sequences() -> None:
    offered = explorer.batches_for(3000, 16, 9000, 10_000)
    assert 9000 in offered
    assert 10_000 not in offered
    assert all(tokens % 3000 == 0 for tokens in offered)


@pytest.mark.parametrize(
    ("change", "word"),
    [({"num_heads": 30}, "width"), ({"num_kv_heads": 5}, "key-value"), ({"num_experts": 1}, "experts")],
)
def test_a_shape_that_is_no_transformer_is_refused_in_words(change: dict[str, int], word: str) -> None:
    values = {
        "num_layers": 32,
        "hidden_size": 4096,
        "num_heads": 32,
        "num_kv_heads": 8,
        "ffn_hidden_size": 14_336,
        "vocab_size": 128_256,
        "num_experts": 0,
        "experts_per_token": 2,
        "expert_ffn_hidden_size": 14_336,
    }
    assert explorer.read_shape(values, gated=True, tied=False) == LLAMA
    refused = explorer.read_shape({**values, **change}, gated=True, tied=False)
    assert isinstance(refused, str)
    assert word in refused


def test_breakdowns_add_up_to_what_they_break_down() -> None:
    answer = explorer_layout.answer_for(SETUP.request(choose_profile), Choice(tp=2, mbs=2, zero_stage=1))
    assert (answer.dp, answer.gas) == (8, 1)
    *parts, total = answer.memory
    assert sum(part.size for part in parts) == pytest.approx(total.size)
    assert total.size == pytest.approx(answer.need_bytes)
    assert answer.fits == (answer.need_bytes <= answer.card_bytes)
    *times, step = answer.time
    assert sum(part.size for part in times) == pytest.approx(answer.step_time_s)
    assert step.kind == "total"
    for before, after in pairwise(parts):
        assert after.before == pytest.approx(before.before + before.size)


def test_what_a_layout_never_has_is_not_listed() -> None:
    request = SETUP.request(choose_profile)
    assert "CP communication" not in [part.name for part in explorer_layout.answer_for(request, Choice()).time]
    with_cp = explorer_layout.answer_for(request, Choice(cp=2, recompute="full")).time
    assert {"CP communication", "Recomputation"} <= {part.name for part in with_cp}


def test_knobs_start_from_the_fastest_layout_or_from_the_leanest() -> None:
    request = SETUP.request(choose_profile)
    best = explorer.found_for(request).layouts.row(0, named=True)
    assert explorer.start_of(request) == Choice.of(best)
    tight = Setup("GPT-3 175B", shape_of(find_model("GPT-3 175B") or {}), "H100-SXM-80GB", 1, 2048, 8 * 2048)
    assert not explorer.found_for(tight.request(choose_profile)).fitting
    request = tight.request(choose_profile)
    leanest = explorer.start_of(request)
    for other in (replace(leanest, recompute="none"), replace(leanest, recompute="full"), Choice(tp=8)):
        needed = explorer_layout.answer_for(request, other).need_bytes
        assert explorer_layout.answer_for(request, leanest).need_bytes <= needed


def test_neighbours_come_by_distance_and_say_what_is_not_the_same() -> None:
    run = {
        "run_id": "same",
        "dp": 8,
        "tp": 2,
        "pp": 1,
        "cp": 1,
        "ep": None,
        "vpp": None,
        "gas": 1,
        "mbs": 2,
        "zero_stage": 1,
        "recompute": None,
        "num_gpus": 16,
        "seq_len": 8192,
        "gbs_tokens": 16 * 8192,
        "tokens_per_s_per_gpu": 5000.0,
    }
    runs = pl.DataFrame(
        [
            run | {"run_id": "far", "tp": 8, "num_gpus": 64},
            run | {"run_id": "zero", "zero_stage": 0},
            run | {"run_id": "unstated", "tp": None, "zero_stage": None},
            run,
            run | {"run_id": "again", "tokens_per_s_per_gpu": 6000.0},
        ]
    )
    answer = explorer_layout.answer_for(SETUP.request(choose_profile), Choice(tp=2, mbs=2, zero_stage=1))
    near = explorer_layout.nearest(runs, answer, SETUP, 16)
    assert near["run_id"].to_list() == ["again", "same", "zero", "unstated", "far"]
    assert near["distance"].to_list() == [0.0, 0.0, 0.25, 1.0, 4.0]
    assert near["differs"].to_list() == [[], [], ["zero_stage"], ["tp"], ["tp", "num_gpus"]]
