"""Which logs are inferred: those that no dialect knows, and known ones that print far more steps than it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.errors import LimitError
from sweepscope.pipeline.ingest import infer_logs
from sweepscope.pipeline.io.spill import on_disk
from sweepscope.pipeline.logs.inference.infer import infer
from sweepscope.pipeline.logs.inference.result import Inference
from tests.pipeline.ingest_in_memory import batch_of
from tests.pipeline.logs.runs.test_assemble import config, log
from tests.pipeline.nccl.bench.test_printed_table import HEADER, ROW, TAIL

NOISE = "".join(f"[rank{rank}]: loading shard {shard} of 64\n" for rank in range(8) for shard in range(64))
SETTINGS = "tensor parallel size: 2\n"
OWN_STEPS = "".join(f"update {step:>3} | train loss {9 - step / 50:.3f} | 13,000 tok/s\n" for step in range(1, 100))


@pytest.fixture
def inferred(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Heights of the samples from which anything was inferred."""
    heights: list[int] = []

    def counted(sample: pl.DataFrame, **options: object) -> Inference:
        heights.append(sample.height)
        return infer(sample, **options)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(infer_logs, "infer", counted)
    return heights


def beside(folder: str, text: str) -> dict[str, str]:
    """A log whose layout a configuration beside it states."""
    return {f"{folder}/log_1.out": text, f"{folder}/config.json": config()}


def test_a_known_log_is_not_inferred_for_its_noise(inferred: list[int]) -> None:
    read = batch_of({**beside("a", log(1, 4) + NOISE), **beside("b", log(1, 4) + NOISE * 3)})
    assert inferred == []
    assert read.facts.steps["source"].n_unique() == 2


def test_a_known_log_with_many_other_steps_is_inferred(inferred: list[int]) -> None:
    batch_of({"run.log": SETTINGS + log(1, 2) + OWN_STEPS})
    assert len(inferred) == 1


def test_a_known_log_is_not_inferred_for_bars_or_further_lines_of_each_step(inferred: list[int]) -> None:
    bars = "".join(f"train: 1%|x| {step}/400 [00:01<00:02, 2.1it/s]\n" for step in range(200))
    parts = "".join(log(step, step + 1) + f"ce loss: {9 / step}\nz loss: 0.{step}\n" for step in range(1, 40))
    batch_of(beside("a", parts + bars))
    assert inferred == []


def test_a_measurement_of_the_network_is_not_inferred_unless_a_training_follows_it(inferred: list[int]) -> None:
    bench = HEADER + ROW + TAIL
    read = batch_of({"a/all_gather.out": bench, "b/train.log": bench + OWN_STEPS})
    assert len(inferred) == 1
    assert read.facts.steps["source"].unique().to_list() == [1]


def test_an_unknown_log_is_inferred(inferred: list[int]) -> None:
    read = batch_of({"run.log": OWN_STEPS})
    assert len(inferred) == 1
    assert read.facts.steps["step"].to_list() == list(range(1, 100))


def test_steps_of_a_known_format_that_are_evaluations_give_way_to_the_steps_between_them() -> None:
    """nanoGPT's model and evaluation, in a script that prints its own steps with a loss of no sure name."""
    lines = ["num decayed parameter tensors: 50, with 124,354,560 parameters"]
    for step in range(20, 2020, 20):
        lines.append(f"After {step} steps the loss is {9 - step / 500:.4f}, learning rate {step / 1e7:.2e}")
        if step % 400 == 0:
            lines.append(f"step {step}: train loss {9 - step / 500:.4f}, val loss {9.1 - step / 500:.4f}")
    read = batch_of({"run.log": "\n".join(lines) + "\n"})
    assert read.facts.steps["step"].to_list() == list(range(20, 2020, 20))


def test_bare_steps_of_a_known_format_give_way_to_those_with_losses() -> None:
    """ImageNet's loop counts its epochs from 0; one that prints its first columns may do so from 1, and its losses."""
    lines = (
        f"Epoch: [{epoch}][{batch}/50]\tTime 0.8{batch % 7} DataTime 0.577, loss {4 - epoch / 5 - batch / 500:.5f}\t\n"
        for epoch in (1, 2, 3)
        for batch in range(1, 51)
    )
    read = batch_of({"run.log": "".join(lines)})
    assert read.facts.steps["step"].to_list() == list(range(1, 151))
    assert read.facts.steps["loss"].null_count() == 0


def test_optimizer_steps_of_a_known_format_do_not_give_way_to_its_micro_batches() -> None:
    """litgpt's lines count both: a dialect that takes every fourth of them does so on purpose."""
    line = "Epoch 1 | iter {} step {} | loss train: {:.3f}, val: n/a | iter time: {:.2f} ms{}\n"
    lines = (
        line.format(batch, batch // 4, 4 - batch / 1000, 400 + batch % 7, "" if batch % 4 else " (step)")
        for batch in range(1, 401)
    )
    read = batch_of({"run.log": "".join(lines)})
    assert read.files["parser"].to_list() == ["litgpt"]
    assert read.facts.steps["step"].drop_nulls().to_list() == list(range(1, 101))


def test_settings_of_a_known_log_are_inferred_without_looking_for_other_steps(inferred: list[int]) -> None:
    read = batch_of({"run.log": SETTINGS + log(1, 40)})
    assert inferred == []
    assert dict(read.facts.settings.select("name", "value").iter_rows())["tp"] == "2"


def test_the_limits_of_a_log_grow_with_all_that_is_read_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    @contextmanager
    def measured(_path: str, size: Callable[[], int]) -> Iterator[None]:
        yield
        sizes.append(size())

    monkeypatch.setattr(infer_logs, "metered", measured)
    text = SETTINGS + log(1, 2) + OWN_STEPS
    batch_of({"run.log": text})
    assert sizes == [2 * len(text)]  # its sample, and then the whole of it


def test_steps_that_are_many_are_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory = batch_of({"run.log": OWN_STEPS}).facts.steps
    monkeypatch.setattr(infer_logs, "SPILL_BYTES", 1)
    kept: list[int] = []
    monkeypatch.setattr(infer_logs, "on_disk", lambda frame: kept.append(frame.height) or on_disk(frame))
    assert batch_of({"run.log": OWN_STEPS}).facts.steps.equals(in_memory)
    assert sum(kept) == in_memory.height


def test_a_log_that_takes_too_much_is_rejected_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(_sample: pl.DataFrame, **_options: object) -> Inference:
        raise LimitError("reading it takes more than 10 s of processor time")

    monkeypatch.setattr(infer_logs, "infer", too_much)
    read = batch_of({"run.log": OWN_STEPS, "other.log": log(1, 4)})
    assert [Path(path).name for path in read.rejects["file"]] == ["run.log"]
    assert "10 s of processor time" in read.rejects["raw"].item()
    assert read.facts.steps["source"].n_unique() == 1
