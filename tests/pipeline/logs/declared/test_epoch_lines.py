"""Steps of epochs whose number stands in a line above them."""

from __future__ import annotations

from tests.pipeline.ingest_in_memory import tables_of


def epoch(number: int, length: int, *, is_announced: bool = True, until: int | None = None) -> str:
    head = f"[INFO] Epoch {number}/4 started\n" if is_announced else ""
    steps = range(10, (until or length) + 1, 10)
    return head + "".join(f"[INFO] step={step}/{length} loss={5 - number / 4 - step / 999:.4f}\n" for step in steps)


def test_a_training_that_begins_anew_below_the_last_epoch_of_another_is_one_of_its_own() -> None:
    """Only the length of an epoch shows it: the line of its first one was lost."""
    first = "".join(epoch(number, 140) for number in (1, 2, 3, 4))
    text = first + epoch(1, 280, is_announced=False) + epoch(2, 280, until=200)
    runs = tables_of({"train.log": text})["runs"].sort("attempt")
    assert runs.select("first_step", "last_step", "steps_planned").rows() == [(10, 560, 560), (10, 480, 1120)]


def test_an_epoch_is_as_long_as_it_says() -> None:
    runs = tables_of({"train.log": "".join(epoch(number, 140) for number in (1, 2, 3))})["runs"]
    assert runs.select("first_step", "last_step", "steps_planned").rows() == [(10, 420, 560)]


def test_epochs_of_several_trainings_in_a_log_that_is_longer_than_its_sample() -> None:
    """Where the sample leaves lines out, many epochs begin between two of its steps."""
    text = ""
    for seed in range(10):
        text += f"training model with seed {seed}\n"
        for number in range(1, 31):
            text += f"Epoch {number}/30\n"
            text += "".join(
                f" {done}/6400 [===>...] - ETA: 1s - loss: {2 - number / 40 - done / 9e4 + seed / 99:.4f}\n"
                for done in range(512, 6401, 512)
            )
    runs = tables_of({"train.log": text})["runs"].sort("attempt")
    assert runs["steps_logged"].to_list() == [360] * 10
    assert set(runs["last_step"].to_list()) == {29 * 6400 + 6144}
