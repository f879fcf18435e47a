"""Losses that nothing numbers: each line is one more step, and the run says that its steps are ordinals."""

from __future__ import annotations

import math

import pytest

from tests.pipeline.ingest_in_memory import tables_of

EPOCHS, BATCHES = 3, 37


def loss(number: int) -> float:
    return round(1 + 6 * math.exp(-number / 30) + math.sin(number * number) / 20, 4)


def epochs_of(batches: int = BATCHES, *, name: str = "batch loss") -> str:
    lines = []
    for epoch in range(EPOCHS):
        mine = [loss(epoch * batches + batch) for batch in range(batches)]
        lines += [f"Epoch {epoch + 1} > {name}: {one}" for one in mine]
        lines.append(f"Epoch {epoch + 1} > mean of the epoch: {sum(mine) / batches:.4f}, validated 0.5")
    return "\n".join(["Trainer begins", *lines, ""])


@pytest.mark.parametrize("name", ["batch loss", "loss"])
def test_losses_beside_the_number_of_their_epoch_only_are_counted(name: str) -> None:
    tables = tables_of({"train.log": epochs_of(name=name)})
    (run,) = tables["runs"].to_dicts()
    count = EPOCHS * BATCHES
    assert (run["parser"], run["step_basis"], run["steps_logged"]) == ("inferred", "ordinal", count)
    steps = tables["steps"].sort("step")
    assert steps["step"].to_list() == list(range(1, count + 1))
    assert steps["loss"].to_list() == [loss(number) for number in range(count)]
    assert run["step_time_s"] is None


def test_losses_without_any_number_are_counted() -> None:
    text = "".join(f"training loss: {loss(number)}\n" for number in range(50))
    (run,) = tables_of({"train.log": f"Loading the corpus\n{text}"})["runs"].to_dicts()
    assert (run["step_basis"], run["last_step"], run["last_loss"]) == ("ordinal", 50, loss(49))


def test_each_launch_counts_anew() -> None:
    once = "My trainer starts\nbatch size: 8\n" + "".join(f"loss = {loss(number)}\n" for number in range(20))
    runs = tables_of({"train.log": once + once})["runs"].sort("attempt")
    assert runs["first_step"].to_list() == [1, 1]
    assert runs["last_step"].to_list() == [20, 20]


def test_equal_lines_of_an_epochs_processes_are_no_batches() -> None:
    lines = [f"Epoch {epoch} loss: {loss(10 * epoch) + rank / 1000:.4f}" for epoch in range(1, 13) for rank in range(8)]
    (run,) = tables_of({"train.log": "\n".join(["world size: 8", *lines, ""])})["runs"].to_dicts()
    assert (run["step_basis"], run["last_step"]) == ("whole_epoch", 12)


def test_parts_of_an_epoch_number_their_losses() -> None:
    lines = [f"loss: {loss(number)}, epoch: {number / 10:.2f}" for number in range(1, 40)]
    runs = tables_of({"train.log": "\n".join(["Trainer begins", *lines, ""])})["runs"]
    assert "ordinal" not in runs["step_basis"].to_list()
