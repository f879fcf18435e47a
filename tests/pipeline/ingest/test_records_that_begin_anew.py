"""Records of steps to which a second start of the trainer has written."""

from __future__ import annotations

from tests.pipeline.ingest_in_memory import tables_of


def records(*steps: int) -> str:
    return "".join(f'{{"run": "a", "step": {step}, "train_loss": {9 - step / 99:.3f}}}\n' for step in steps)


def test_records_that_begin_anew_are_steps() -> None:
    text = records(*range(0, 200, 10), *range(50, 300, 10))
    tables = tables_of({"a/token-tango.jsonl": text})
    assert tables["runs"]["last_step"].max() == 290


def test_records_in_no_order_are_data() -> None:
    assert tables_of({"a/samples.jsonl": records(*(step * 37 % 101 for step in range(90)))})["runs"].is_empty()
