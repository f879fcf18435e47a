"""Losses that a log prints without a name."""

from __future__ import annotations

from collections.abc import Callable
from math import exp

import numpy as np
import polars as pl
import pytest

from sweepscope.pipeline.ingest import log_blocks
from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.declared.explain import explain
from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.logs.inference.infer import infer
from sweepscope.pipeline.text import lines
from tests.pipeline.ingest_in_memory import tables_of

STEPS = 120
NOISE = np.random.default_rng(7).normal(0, 0.05, STEPS)
LOSSES = [round(3 + 7 * exp(-step / 40) + noise, 4) for step, noise in enumerate(NOISE)]
HEAD = "using 8x H100-SXM5-80GB\nbatch_size=8 seq_len=1024 world_size=8\n"


def log(form: Callable[[int, float], str], values: list[float] = LOSSES) -> str:
    return HEAD + "".join(f"{form(step, value)}\n" for step, value in enumerate(values))


@pytest.mark.parametrize(
    "form",
    [
        lambda step, loss: f"step {step}: {loss:.4f}",
        lambda step, loss: f"[{step}/{STEPS}] {loss:.4f} 0.312s",
        lambda step, loss: f"epoch 0 iter {step} {loss:.4f} 312.0ms 211.2k tok/s",
        lambda step, loss: f"step {step}, {loss:.4f}, 0.31",
        lambda step, loss: f"Step {step}/{STEPS}, {loss:.4f}, 0.312s, 3.0e-4",
        lambda step, loss: f"it={step} l={loss:.4f} mem=41.2G",
        lambda step, loss: f"{step}: train {loss:.4f}",
        lambda step, loss: f"s:{step} l:{loss:.4f} g:1.31 dt:312.0ms",
        lambda step, loss: f"{step:06d} | {loss:.4f} | 312 ms",
        lambda step, loss: f"{step},{loss:.4f},0.001",
    ],
    ids=[
        *("colon", "brackets", "blanks", "commas", "with a unit", "letter"),
        *("number of the line", "letters", "cells between bars", "cells between commas"),
    ],
)
def test_a_number_that_comes_down_as_a_loss_does_is_one(form: Callable[[int, float], str]) -> None:
    tables = tables_of({"train.log": log(form)})
    assert tables["steps"].sort("step").select("step", "loss").rows() == list(enumerate(LOSSES))
    times = tables["steps"]["step_time_s"].drop_nulls().unique().to_list()
    assert times == ([0.312] if "312" in form(0, 1) else [])


def test_launches_of_a_loop_print_losses_without_a_name() -> None:
    """Each is shorter than what shows a loss: together, in the order of their steps, they do."""
    launches = (
        f"+ torchrun --nproc_per_node 8 pretrain.py --mbs {mbs} --gbs 256 --seq-length 4096\n"
        + "".join(f"{step:>4d}/30 | {LOSSES[step * 4 - mbs]:.4f} | 3.41 sec | 132 TF\n" for step in range(5, 31, 5))
        for mbs in (1, 2, 3, 4, 6, 8)
    )
    tables = tables_of({"loop.log": "".join(launches)})
    runs = tables["runs"].sort("line_no")
    assert runs.select("mbs", "last_step").rows() == [(mbs, 30) for mbs in (1, 2, 3, 4, 6, 8)]
    assert tables["steps"]["loss"].null_count() == 0
    assert runs["tflops_per_gpu_logged"].unique().to_list() == [132.0]


@pytest.mark.parametrize(
    "values",
    [
        [3e-4 * (1 - step / STEPS) * 1e4 for step in range(STEPS)],
        [40 * (1 - step / STEPS) for step in range(STEPS)],
        [2.5 + noise for noise in NOISE],
        [0.31 + 0.6 * (step == 0) + noise / 10 for step, noise in enumerate(NOISE)],
        [8 - loss for loss in LOSSES],
    ],
    ids=["schedule", "time left", "flat", "time of a step", "rising"],
)
def test_numbers_that_do_not_come_down_as_a_loss_does_are_none(values: list[float]) -> None:
    tables = tables_of({"train.log": log(lambda step, value: f"step {step}: {value:.4f}", values)})
    assert tables.get("steps", pl.DataFrame({"loss": []}))["loss"].drop_nulls().is_empty()


def test_of_two_such_numbers_neither_is_believed() -> None:
    text = log(lambda step, loss: f"step {step}: {loss:.4f} {loss * 1.1 - 0.2:.4f}")
    tables = tables_of({"train.log": text})
    assert tables.get("steps", pl.DataFrame({"loss": []}))["loss"].drop_nulls().is_empty()


@pytest.mark.parametrize("name", ["loss.txt", "spectrum.txt"])
def test_numbers_without_any_word_are_steps_where_the_name_tells(name: str) -> None:
    text = "".join(f"{step} {loss:.4f}\n" for step, loss in enumerate(LOSSES))
    tables = tables_of({name: text})
    if name == "loss.txt":
        assert tables["steps"].sort("step").select("step", "loss").rows() == list(enumerate(LOSSES))
    assert tables["runs"].height == (name == "loss.txt")


def test_a_number_in_front_of_lines_is_a_rank_where_each_prints_again_and_again() -> None:
    printed = [f"{rank:2}: step {step} loss {loss:.4f}" for step, loss in enumerate(LOSSES) for rank in range(32)]
    tables = tables_of({"train.log": "\n".join(printed)})
    assert tables["steps"].sort("step").select("step", "loss").rows() == list(enumerate(LOSSES))
    assert tables["runs"].height == 1


def test_a_dialect_file_says_that_numbers_in_front_of_lines_are_those_of_steps() -> None:
    text = "".join(f"{step}: train {loss:.4f}\n" for step, loss in enumerate(LOSSES))
    inference = infer(log_blocks.sample([(text.encode(), 1)]))
    assert 'labels = "steps"' in inference.toml
    document = read_document(inference.toml, "mine.toml")
    found = explain(cleaning.clean(lines.split(0, text.encode())), document, [])
    assert (found.steps, found.rejects) == (STEPS, 0)
