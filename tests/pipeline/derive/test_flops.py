"""One model, one number of FLOPs per token, whatever its runs' frameworks print of it."""

from __future__ import annotations

from datetime import datetime
from statistics import median

import polars as pl
import pytest

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.ingest.batch import parse_batch
from sweepscope.pipeline.ingest.discover import discover
from sweepscope.pipeline.io.files import list_files
from sweepscope.pipeline.reference.models import find_model, known_models, shape_of
from sweepscope.pipeline.simulate.sweep import write_sweep
from tests.run_rows import Row, completed_frame, run_row

SMOLLM: Row = {
    "model": "SmolLM2 1.7B",
    "num_layers": 24,
    "hidden_size": 2048,
    "num_heads": 32,
    "num_kv_heads": 32,
    "ffn_hidden_size": 8192,
    "gated_mlp": True,
    "vocab_size": 49_152,
    "tie_word_embeddings": True,
}
UNKNOWN: Row = dict.fromkeys(SMOLLM) | {"model": "SmolLM2 1.7B"}
PICOTRON: Row = UNKNOWN | {"num_layers": 24, "num_heads": 32, "params": 1_810_000_000}
"""picotron prints rounded parameters, those of its untied embeddings counted, and no width."""
OURS: Row = UNKNOWN | {"model": "ours", "num_layers": 24, "hidden_size": 2048, "vocab_size": 49_152}
TORCHTITAN: Row = UNKNOWN | {"params": 1_711_376_384}
MEGATRON: Row = SMOLLM | {"vocab_size": 49_664}
"""Megatron pads the vocabulary to a multiple of 128 x tp."""


def completed(*rows: Row, seq_len: int = 4096) -> pl.DataFrame:
    changes = {"seq_len": seq_len, "gbs_tokens": 256 * seq_len}
    return completed_frame(*(run_row(f"run {i}", **{**row, **changes}) for i, row in enumerate(rows)))


@pytest.mark.parametrize("seq_len", [2048, 8192])
def test_a_registered_model_has_the_flops_of_its_shape_whatever_is_printed(seq_len: int) -> None:
    runs = completed(SMOLLM, PICOTRON, TORCHTITAN, MEGATRON, UNKNOWN, seq_len=seq_len)
    registered = find_model("SmolLM2 1.7B")
    assert registered is not None
    assert set(runs["flops_basis"]) == {"registered_shape"}
    assert set(runs["flops_per_token"]) == {shape_of(registered).flops_per_token(seq_len)}
    assert runs["mfu"].n_unique() == 1
    assert runs["mfu_basis"].str.starts_with("6N + 12Lhs; ").all()


@pytest.mark.parametrize(
    ("changes", "basis"),
    [
        (SMOLLM | {"num_layers": 4}, "stated_shape"),
        (SMOLLM | {"vocab_size": 131_072}, "stated_shape"),
        (SMOLLM | {"model": "a model of ours"}, "stated_shape"),
        (SMOLLM | {"model": None, "num_layers": 20}, "stated_shape"),
        (SMOLLM | {"model": "ours", "vocab_size": None, "params": 1_700_000_000}, "parameters_and_attention"),
        (TORCHTITAN | {"params": 1_500_000_000}, "parameters"),
        (TORCHTITAN | {"model": "a model of ours"}, "parameters"),
        (TORCHTITAN | {"model": "a model of ours", "params": None}, None),
        (OURS, "assumed_shape"),
        (UNKNOWN | {"model": "ours-13b"}, "named_size"),
        (UNKNOWN | {"model": "ours-30B-A3B"}, None),
        (UNKNOWN | {"model": "ours-8x7b"}, None),
        (OURS | {"vocab_size": None}, None),
        (OURS | {"num_experts": 8}, None),
    ],
)
def test_what_contradicts_the_registry_keeps_its_own_flops(changes: Row, basis: str | None) -> None:
    run = completed(changes).row(0, named=True)
    assert run["flops_basis"] == basis
    assert (run["flops_per_token"] is None) == (basis is None)


def test_an_assumed_shape_has_nearly_the_flops_of_registered_dense_models() -> None:
    shapes = {name: shape_of(find_model(name) or {}) for name in known_models()}
    dense = {name: shape for name, shape in shapes.items() if not (shape.num_experts or shape.kv_lora_rank)}
    stated = ("num_layers", "hidden_size", "vocab_size")
    rows = [
        OURS | {"model": f"ours {number}"} | {name: getattr(shape, name) for name in stated}
        for number, shape in enumerate(dense.values())
    ]
    errors = [
        abs(assumed / shape.flops_per_token(4096) - 1)
        for assumed, shape in zip(completed(*rows)["flops_per_token"], dense.values(), strict=True)
    ]
    assert len(errors) > 30
    assert median(errors) < 0.1
    assert sum(error < 0.2 for error in errors) / len(errors) > 0.8
    assert max(errors) < 0.55  # of Gemma, whose feed-forward layers are 8 times as wide as the model


def test_completing_runs_again_changes_no_flops() -> None:
    runs = completed(SMOLLM, PICOTRON, TORCHTITAN, UNKNOWN)
    assert complete_runs(runs).runs.equals(runs)


@pytest.fixture(scope="module", params=[1, 5])
def simulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """Runs of a simulated sweep, of every framework; seed 1 is the demo."""
    root = write_sweep(tmp_path_factory.mktemp("simulated") / "sweep", runs=120, seed=request.param)
    found = discover(list_files(str(root)), is_simulated=lambda _directory: True)
    return parse_batch(found, now=datetime(2027, 1, 1))["runs"]


@pytest.mark.slow
def test_simulated_runs_of_one_model_have_one_flop_basis(simulated: pl.DataFrame) -> None:
    named = simulated.drop_nulls(["model", "seq_len"])
    counted = named.group_by("model", "seq_len").agg(pl.col("flops_basis", "flops_per_token").n_unique())
    assert counted.filter(pl.max_horizontal("flops_basis", "flops_per_token") > 1).is_empty()
    assert named["framework"].n_unique() > 3


def test_simulated_runs_rank_by_mfu_as_by_throughput(simulated: pl.DataFrame) -> None:
    known = simulated.drop_nulls(["model", "seq_len", "accelerator", "mfu"])
    ranks = known.select(pl.col("mfu", "tokens_per_s_per_gpu").rank("ordinal").over("model", "seq_len", "accelerator"))
    assert ranks.height > 60
    assert ranks["mfu"].to_list() == ranks["tokens_per_s_per_gpu"].to_list()


SPARSE: Row = dict.fromkeys(SMOLLM) | {
    "model": "ours-sparse",
    "num_layers": 48,
    "hidden_size": 2048,
    "num_heads": 32,
    "num_kv_heads": 4,
    "head_dim": 128,
    "ffn_hidden_size": 768,
    "vocab_size": 151_936,
    "num_experts": 128,
    "experts_per_token": 8,
    "params": 30_530_000_000,
}
"""Qwen3-30B-A3B's shape (its config.json), as a trainer of one's own may state it: one width, and not whose."""


def test_the_only_width_of_a_model_is_that_of_its_experts_where_the_parameters_show_it() -> None:
    runs = completed(SPARSE, SPARSE | {"ffn_hidden_size": 6144}, SPARSE | {"params": None})
    assert runs["expert_ffn_hidden_size"].to_list() == [768, None, None]


def test_of_experts_of_unknown_width_as_many_parameters_are_active_as_experts() -> None:
    whole, unknown, shared = completed(
        SPARSE | {"active_params": 3_350_000_000},
        SPARSE | {"ffn_hidden_size": None},
        SPARSE | {"ffn_hidden_size": None, "shared_expert_ffn_hidden_size": 768},
    )["flops_per_token"].to_list()
    assert unknown == pytest.approx(whole, rel=0.1)
    assert shared is None
