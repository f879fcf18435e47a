"""Runs of one layout with other options are other measurements, not repeats of one."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.dashboard.queries import cells
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.text.best import cell_answer
from sweepscope.dashboard.view_models.ranking import with_named_options
from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.logs.runs.options import is_option_name, with_options
from tests.pipeline.ingest_in_memory import tables_of
from tests.run_rows import open_store

HEAD = "Namespace(mbs=8, gas=1, seq=2048, {options})\nNVIDIA H100 80GB HBM3, world size 1\nmodel llama-1b: 1,235,814,400 parameters\n"


def log(ms: float, **options: object) -> str:
    steps = (f"step {step}/30 | loss {4 - step / 20:.4f} | {ms + step % 3 / 10:.1f} ms/step\n" for step in range(1, 31))
    return HEAD.format(options=", ".join(f"{name}={value!r}" for name, value in options.items())) + "".join(steps)


LOGS = {
    "a/train.log": log(354.0, compile="none", loss="eager", seed=1, out="runs/a"),
    "b/train.log": log(278.0, compile="layer", loss="eager", seed=2, out="runs/b"),
    "c/train.log": log(356.0, compile="none", loss="eager", seed=3, out="runs/c"),
}


def read(files: dict[str, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Complete runs and arguments of some logs."""
    tables = tables_of(files)
    return with_options(complete_runs(tables["runs"]).runs, tables["arguments"])


def test_an_option_sets_runs_apart_and_a_seed_or_a_path_does_not() -> None:
    runs, arguments = read(LOGS)
    first, second, third = runs.sort("source_path")["options_id"]
    assert first == third != second
    assert arguments.filter("is_option")["name"].unique().sort().to_list() == ["compile", "gas", "loss", "mbs", "seq"]


def test_runs_without_arguments_have_no_options() -> None:
    runs, _ = read({"train.log": "".join(f"step {step} loss {4 - step / 20:.3f}\n" for step in range(1, 30))})
    assert runs["options_id"].to_list() == [None]


def test_the_ranking_of_a_cell_names_the_option_that_made_the_difference() -> None:
    runs, arguments = read(LOGS)
    with open_store(runs, arguments=arguments) as store:
        shown = cells.ranking(Slice("measured", "H100-SXM-80GB", 2048, 16384), Filters()).run(store)
    assert shown.select("variant", "repeats").rows() == [("compile layer", 1), ("compile none", 2)]


@pytest.mark.parametrize(
    ("name", "is_option"),
    [
        ("attn_implementation", True),
        ("recompute_granularity", True),
        ("training.gradient_checkpointing", True),
        ("dataloader_num_workers", True),
        ("overlap_grad_reduce", True),
        ("use_distributed_optimizer", True),
        ("general.run", False),
        ("checkpoint.save_interval", False),
        ("data_path", False),
        ("lr_decay_iters", False),
        ("master_port", False),
    ],
)
def test_what_is_an_option(name: str, is_option: bool) -> None:
    assert is_option_name(name) is is_option


def test_the_answer_names_the_options_of_the_winner_and_of_the_same_layout_behind_it() -> None:
    runs, arguments = read(LOGS)
    chosen = Slice("measured", "H100-SXM-80GB", 2048, 16384)
    with open_store(runs, arguments=arguments) as store:
        (cell,) = cells.cells(chosen, Filters()).run(store).to_dicts()
        ranked = cells.ranking(chosen, Filters(), cell).run(store)
    text = cell_answer({**with_named_options(cell, ranked), "scale": "1"})
    assert "DP1 TP1 PP1 · GAS1 MBS8, compile layer" in text.replace("\N{NO-BREAK SPACE}", " ").replace(
        "\N{WORD JOINER}", ""
    )
    assert "faster than the same layout with compile none" in text
