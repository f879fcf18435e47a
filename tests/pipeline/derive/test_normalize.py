from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from sweepscope.pipeline.derive.normalize import FILLED, normalise_runs
from tests.properties import draws
from tests.run_rows import Row, run_row, runs_frame

NOTHING: Row = dict.fromkeys((*FILLED, "zero_stage", "cp"))


def normalise(*, are_whole: bool = False, **changes: Any) -> Row:
    """The normalised run of which only `changes` are known."""
    return normalise_runs(runs_frame(run_row(**NOTHING | changes)), are_whole=are_whole).runs.to_dicts()[0]


def test_a_loop_copied_from_pytorchs_examples_leaves_out_what_it_does_not_use() -> None:
    run = normalise(are_whole=True, framework="pytorch-examples", num_gpus=16, tp=4, pp=1, mbs=2, gas=4)
    assert (run["dp"], run["cp"], run["gbs"]) == (4, 1, 32)
    assert normalise(are_whole=True, framework="megatron", num_gpus=16, tp=4, pp=1, mbs=2, gas=4)["dp"] is None


@pytest.mark.parametrize(
    ("known", "filled"),
    [
        ({"num_gpus": 32, "tp": 4, "pp": 2, "cp": 1}, {"dp": 4}),
        ({"num_gpus": 32, "tp": 4, "pp": 2}, {"dp": None, "cp": None}),  # CP 2 would do as well
        ({"num_gpus": 32, "dp": 4, "tp": 4, "pp": 2}, {"cp": 1}),
        ({"num_gpus": 8, "dp": 8}, {"tp": 1, "pp": 1, "cp": 1}),
        ({"num_gpus": 8, "tp": 3, "pp": 1, "cp": 1}, {"dp": None}),
        ({"num_gpus": 6144, "dp": 256, "tp": 12, "pp": 1}, {"cp": None}),  # a contradiction, not CP 2
        ({"dp": 2, "tp": 2, "pp": 2, "cp": 2}, {"num_gpus": 16}),
        ({"num_nodes": 4, "gpus_per_node": 8}, {"num_gpus": 32}),
        ({"num_gpus": 32, "num_nodes": 4}, {"gpus_per_node": 8}),
        ({"num_gpus": 2, "gpus_per_node": 8}, {"num_nodes": 1}),
        ({"dp": 4, "mbs": 2, "gas": 8}, {"gbs": 64}),
        ({"dp": 4, "mbs": 2, "gbs": 64}, {"gas": 8}),
        ({"dp": 4, "mbs": 3, "gbs": 64}, {"gas": None}),
        ({"mbs": 2, "gas": 8, "gbs": 64}, {"dp": 4}),
        ({"mbs": 3, "gas": 8, "gbs": 64}, {"dp": None}),
        ({"mbs": 1, "gas": 1, "gbs": 8, "tp": 4, "num_gpus": 16}, {"dp": None}),  # 32 ranks: one of them is not so
        ({"mbs": 1, "gas": 2, "gbs": 8, "tp": 4, "num_gpus": 16}, {"dp": 4, "pp": 1}),
        ({"gbs": 256, "seq_len": 4096}, {"gbs_tokens": 1_048_576}),
        ({"gbs_tokens": 1_048_576, "seq_len": 4096}, {"gbs": 256}),
        ({"gbs_tokens": 4_000_000, "seq_len": 4096}, {"gbs": None}),  # a rounded "4M"
        ({"gbs_tokens": 1_048_576, "gbs": 256}, {"seq_len": 4096}),
    ],
)
def test_fills_exactly_what_follows(known: Row, filled: Row) -> None:
    run = normalise(**known)
    assert {name: run[name] for name in filled} == filled


def test_llama_3_at_131k_tokens_has_16_8m_tokens_per_batch() -> None:
    # Llama 3 (2407.21783) table 4, third row: CP 16 shards the sequence and does not multiply the batch.
    run = normalise(num_gpus=16_384, tp=8, cp=16, pp=16, dp=8, mbs=1, gas=16, seq_len=131_072)
    assert run["gbs_tokens"] == 16_777_216


@pytest.mark.parametrize(
    ("known", "nodes", "per_node"),
    [
        ({"num_gpus": 64}, 8, 8),
        ({"num_gpus": 4}, 1, 4),
        ({"num_gpus": 72, "accelerator": "GB200"}, 18, 4),
        ({"num_gpus": 12}, None, None),
        ({"num_gpus": 16, "accelerator": "CPU"}, 1, 16),
        ({}, None, None),
    ],
)
def test_assumes_the_usual_node_only_when_nobody_says_it(known: Row, nodes: int | None, per_node: int | None) -> None:
    run = normalise(**known)
    assert (run["num_nodes"], run["gpus_per_node"]) == (nodes, per_node)


def test_says_what_was_derived_and_what_was_assumed() -> None:
    frame = runs_frame(run_row(**NOTHING | {"num_gpus": 64, "tp": 2, "pp": 1, "cp": 1}))
    derived = normalise_runs(frame).derived
    sources = {name: (value, source) for _, name, value, source in derived.iter_rows()}
    assert sources == {
        "dp": ("32", "derived"),
        "gpus_per_node": ("8", "assumed"),
        "num_nodes": ("8", "assumed"),
    }


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"dp": 8, "tp": 4, "pp": 2, "cp": 1, "gas": 16, "mbs": 2, "zero_stage": 1}, "DP8 TP4 PP2 · GAS16 MBS2 · Z1"),
        ({"dp": 2, "tp": 1, "pp": 1, "cp": 4, "ep": 8}, "DP2 TP1 PP1 CP4 EP8"),
        ({"dp": 2, "tp": 1, "pp": 4, "vpp": 3, "cp": 1}, "DP2 TP1 PP4 VPP3"),
        ({"mbs": 4}, "MBS4"),
        ({"zero_stage": 0}, "Z0"),
        ({}, None),
    ],
)
def test_layout_shows_known_parts_only(changes: Row, text: str | None) -> None:
    assert normalise(**{"num_gpus": None} | changes)["layout"] == text


def test_words_come_from_the_vocabulary() -> None:
    run = normalise(precision="torch.bfloat16", recompute="full", accelerator="NVIDIA B200")
    assert (run["precision"], run["recompute"], run["accelerator"]) == ("bf16", "full", "B200-SXM-180GB")
    odd = normalise(precision="posit8", recompute="sometimes")
    assert (odd["precision"], odd["recompute"]) == ("unclear", None)


def test_names_an_unnamed_model_by_its_size_or_its_depth_and_width() -> None:
    assert normalise(model=None, params=1_342_177_280)["model"] == "Llama 1.34B"
    assert normalise(model=None, params=None)["model"] == "16 layers × 2048"
    assert normalise(model=None, params=None, hidden_size=None)["model"] is None


def test_empty_frame_stays_empty() -> None:
    result = normalise_runs(runs_frame())
    assert result.runs.is_empty()
    assert result.derived.is_empty()


degree = st.none() | st.sampled_from([1, 2, 3, 4, 8, 16])
layouts = st.fixed_dictionaries(
    dict.fromkeys(("dp", "tp", "pp", "cp", "mbs", "gas", "num_nodes", "gpus_per_node"), degree)
    | {
        "num_gpus": st.none() | st.sampled_from([1, 8, 12, 64, 512]),
        "gbs": st.none() | st.sampled_from([1, 16, 256]),
        "seq_len": st.none() | st.sampled_from([2048, 4096]),
        "gbs_tokens": st.none() | st.sampled_from([4096, 1_048_576]),
    }
)


@settings(max_examples=draws(30))
@given(layouts)
def test_normalising_twice_changes_nothing(layout: Row) -> None:
    once = normalise_runs(runs_frame(run_row(**layout)))
    twice = normalise_runs(once.runs)
    assert_frame_equal(twice.runs, once.runs)
    assert twice.derived.is_empty()


@settings(max_examples=draws(30))
@given(layouts)
def test_never_replaces_a_known_value(layout: Row) -> None:
    run = normalise_runs(runs_frame(run_row(**layout))).runs.to_dicts()[0]
    assert {name: run[name] for name, value in layout.items() if value is not None} == {
        name: value for name, value in layout.items() if value is not None
    }


@settings(max_examples=draws(30))
@given(
    st.tuples(*[st.sampled_from([1, 2, 4, 8])] * 4),
    st.sampled_from(["dp", "tp", "pp"]),
    st.tuples(*[st.sampled_from([1, 2, 4])] * 2),
)
def test_recovers_a_removed_degree_and_batch(degrees: tuple[int, ...], removed: str, batch: tuple[int, int]) -> None:
    dp, tp, pp, cp = degrees
    mbs, gas = batch
    whole: Row = {
        "dp": dp,
        "tp": tp,
        "pp": pp,
        "cp": cp,
        "num_gpus": dp * tp * pp * cp,
        "mbs": mbs,
        "gas": gas,
        "gbs": dp * mbs * gas,
        "gbs_tokens": dp * mbs * gas * 4096,
    }
    for gone in ((removed,), ("gbs", "gbs_tokens"), ("gas",), ("mbs", "gbs_tokens")):
        run = normalise(**whole | {"seq_len": 4096} | dict.fromkeys(gone))
        assert {name: run[name] for name in whole} == whole


def test_many_runs_are_filled_row_by_row() -> None:
    frame = runs_frame(*(run_row(str(i), **NOTHING | {"num_gpus": 8 * i, "dp": 8 * i}) for i in range(1, 5)))
    assert normalise_runs(frame).runs.select("num_nodes").to_series().to_list() == [1, 2, 3, 4]
    assert normalise_runs(frame).runs.select(pl.col("tp") == 1).to_series().all()


@pytest.mark.parametrize(
    ("known", "cp", "gpus"),
    [
        ({"dp": 4, "tp": 2, "pp": 2}, 1, 16),
        ({"dp": 4, "tp": 2, "pp": 2, "num_nodes": 2}, 1, 16),
        ({"dp": 4, "tp": 2, "pp": 1, "num_nodes": 3}, None, None),
        ({"dp": 4, "tp": 2}, None, None),
        ({"dp": 4, "tp": 2, "pp": 1, "num_gpus": 16}, None, 16),
    ],
)
def test_assumes_no_context_parallelism_where_all_other_degrees_are_stated(
    known: Row, cp: int | None, gpus: int | None
) -> None:
    run = normalise(**NOTHING | {"num_gpus": None} | known)
    assert (run["cp"], run["num_gpus"]) == (cp, gpus)


@pytest.mark.parametrize(
    ("known", "layout"),
    [
        ({"zero_stage": 3, "mbs": 2, "gbs": 64}, (16, 1, 1, 2)),
        ({"zero_stage": 3}, (None, None, None, None)),
        ({"zero_stage": 0, "mbs": 2, "gbs": 64}, (None, None, None, None)),
        ({"zero_stage": 3, "mbs": 2, "gbs": 64, "ep": 8}, (None, None, None, None)),
        ({"zero_stage": 3, "mbs": 2, "gbs": 64, "tp": 2}, (8, 2, 1, 4)),
        ({"mbs": 8, "gbs": 128}, (16, 1, 1, 1)),
        ({"mbs": 8, "gas": 2, "gbs": 256}, (16, 1, 1, 2)),
        ({"mbs": 8, "gbs": 64}, (None, None, None, None)),
    ],
)
def test_assumes_data_parallelism_alone_where_states_are_sharded_or_all_share_a_batch_and_no_degree_is_stated(
    known: Row, layout: tuple[int | None, ...]
) -> None:
    run = normalise(are_whole=True, **NOTHING | {"num_gpus": 16, "framework": "other"} | known)
    assert (run["dp"], run["tp"], run["pp"], run["gas"]) == layout


@pytest.mark.parametrize(
    ("known", "layout"),
    [
        ({"num_gpus": 32, "tp": 4, "pp": 2}, (4, 4, 2, 1)),  # CP 2 would do as well, and would be stated
        ({"num_gpus": 32, "pp": 2}, (16, 1, 2, 1)),
        ({"num_gpus": 32, "tp": 3}, (None, 3, None, None)),
        ({"num_gpus": 32}, (None, None, None, None)),
        ({"tp": 4, "pp": 2}, (None, 4, 2, None)),
        ({"num_gpus": 32, "tp": 4, "pp": 2, "framework": "maxtext"}, (None, 4, 2, None)),
        ({"num_gpus": 32, "pp": 1}, (None, None, 1, None)),
        (
            {"num_gpus": 32, "tp": 4, "mbs": 1, "gas": 2, "gbs": 8},
            (4, 4, None, None),
        ),  # half of the ranks are another's
        ({"num_gpus": 32, "tp": 4, "mbs": 3, "gbs": 64}, (None, 4, None, None)),
    ],
)
def test_assumes_that_degrees_nobody_states_are_not_used_where_others_are_stated(
    known: Row, layout: tuple[int | None, ...]
) -> None:
    run = normalise(are_whole=True, **NOTHING | {"num_gpus": None, "framework": "other"} | known)
    assert (run["dp"], run["tp"], run["pp"], run["cp"]) == layout
