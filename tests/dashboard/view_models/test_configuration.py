"""A run's values with their sources and contradictions."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.dashboard.view_models.configuration import GROUPS, conflicts, contradiction, facts
from sweepscope.schemas.tables.runs import RUNS, SETTINGS
from tests.dashboard.store_rows import Row, run_row, setting_row


def settings(*rows: Row) -> pl.DataFrame:
    return SETTINGS.conform(pl.DataFrame(list(rows), infer_schema_length=None)) if rows else SETTINGS.empty()


def test_every_fact_is_a_column_of_runs() -> None:
    assert {name for names in GROUPS.values() for name in names} <= set(RUNS.column_names)


def test_unknown_values_are_left_out_and_known_ones_shown_in_words() -> None:
    run = run_row(cp=None, vpp=None, precision="bf16", zero_stage=0)
    found = {fact.name: fact.value for fact in facts(run, settings(), "Layout")}
    assert "cp" not in found
    assert (found["precision"], found["zero_stage"], found["gbs"]) == ("BF16", "0", "160 sequences")
    assert {fact.name: fact.value for fact in facts(run, settings(), "Model")}["params"] == "8.03 billion"


def test_active_parameters_are_shown_only_where_they_differ() -> None:
    dense = facts(run_row(), settings(), "Model")
    sparse = facts(run_row(active_params=2_000_000_000), settings(), "Model")
    assert "active_params" not in {fact.name for fact in dense}
    assert {fact.name: fact.value for fact in sparse}["active_params"] == "2 billion"


def test_a_fact_names_its_source_and_what_contradicts_it() -> None:
    rows = settings(
        setting_row(name="mbs", value="5", line_no=1_040),
        setting_row(name="mbs", value="4", setting_source="folder_name", is_used=False, line_no=None),
    )
    fact = next(fact for fact in facts(run_row(), rows, "Layout") if fact.name == "mbs")
    assert fact.source == "argument print, line 1,040"
    assert fact.contradiction == "folder name says 4"
    assert conflicts(rows) == 1


@pytest.mark.parametrize(
    ("used", "other", "is_conflict"),
    [("4", "4.0", False), ("True", "true", False), ("4", "8", True), ("bf16", "fp16", True), ("4", "auto", True)],
)
def test_values_that_mean_the_same_do_not_contradict(used: str, other: str, is_conflict: bool) -> None:
    rows = [setting_row(value=used), setting_row(value=other, setting_source="folder_name", is_used=False)]
    assert bool(contradiction(rows)) is is_conflict
