"""validate(): every row is either valid or named in rejects, whatever is wrong with it."""

from __future__ import annotations

import time
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.ingest.validate import merge_rejects, pandera_schema, validate
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.registry import TABLES
from sweepscope.schemas.tables.ledger import FILES, REJECTS
from sweepscope.schemas.tables.published import ACCELERATORS
from sweepscope.schemas.tables.runs import RUNS, STEPS


def frame(table: Table, *rows: dict[str, Any]) -> pl.DataFrame:
    """Rows of `table` with good values for its required columns, overridden by `rows`."""
    good = {"source_path": "a.log", "line_no": 1, "path": "a.log", "run_id": "r", "step": 1, "accelerator": "h100"}
    base = {name: good[name] for name in table.required}
    return pl.DataFrame([{**base, "line_no": 1, **row} for row in rows], strict=False, infer_schema_length=None)


def reasons(table: Table, rows: pl.DataFrame) -> list[tuple[str | None, str]]:
    return validate(table, rows).rejects.select("column", "reason").rows()


def test_keeps_good_rows_and_completes_their_columns() -> None:
    checked = validate(RUNS, frame(RUNS, {"run_id": "a", "tp": 8, "status": "oom"}))
    assert checked.valid.schema == RUNS.polars_schema
    assert checked.valid.select("run_id", "tp", "status", "pp").rows() == [("a", 8, "oom", None)]
    assert checked.rejects.is_empty()
    assert checked.rejects.schema == REJECTS.polars_schema


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_table_has_a_schema_that_takes_no_rows(table: Table) -> None:
    assert list(pandera_schema(table).columns) == list(table.column_names)
    assert validate(table, table.empty()).valid.schema == table.polars_schema
    assert validate(table, pl.DataFrame()).valid.schema == table.polars_schema


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ({"run_id": None}, "run_id", "must not be empty"),
        ({"source_path": None}, "source_path", "must not be empty"),
        ({"num_nodes": 0}, "num_nodes", "must be at least 1, got 0"),
        ({"step_time_s": 0.0}, "step_time_s", "must be above 0, got 0.0"),
        ({"step_time_s": -2.5}, "step_time_s", "must be above 0, got -2.5"),
        ({"tp": "eight"}, "tp", "cannot be read as Int64, got 'eight'"),
        ({"tp": 2.5}, "tp", "cannot be read as Int64, got 2.5"),
        ({"tp": float("nan")}, "tp", "cannot be read as Int64, got nan"),
        ({"started_at": "yesterday"}, "started_at", "got 'yesterday'"),
        ({"first_step": 3, "last_step": 2}, "first_step", "first_step comes after last_step"),
    ],
)
def test_says_what_is_wrong_with_a_row(row: dict[str, Any], column: str, reason: str) -> None:
    checked = validate(RUNS, frame(RUNS, {"run_id": "bad", **row}))
    assert checked.valid.is_empty()
    assert checked.rejects["column"].to_list() == [column]
    assert reason in checked.rejects["reason"][0]


def test_names_the_vocabulary_of_a_word_outside_it() -> None:
    ((column, reason),) = reasons(RUNS, frame(RUNS, {"status_confidence": "certain"}))
    assert (column, reason) == ("status_confidence", "must be one of: high, medium, low, got certain")


def test_null_passes_every_bound_and_nan_is_a_value() -> None:
    rows = frame(STEPS, {"loss": float("nan"), "step_time_s": None, "mem_reserved_bytes": None})
    checked = validate(STEPS, rows)
    assert checked.rejects.is_empty()
    assert checked.valid["loss"].is_nan().all()


def test_one_pass_reports_every_failure_of_a_row() -> None:
    rows = frame(RUNS, {"run_id": None, "num_nodes": 0, "tp": "x", "status": "fine"}, {"run_id": "ok"})
    checked = validate(RUNS, rows)
    assert sorted(checked.rejects["column"]) == ["num_nodes", "run_id", "status", "tp"]
    assert checked.valid["run_id"].to_list() == ["ok"]


def test_a_reject_points_to_its_line_and_keeps_the_row_as_it_came() -> None:
    rows = frame(RUNS, {"source_path": "x/log.out", "line_no": 41, "tp": "eight"})
    reject = validate(RUNS, rows).rejects.row(0, named=True)
    assert (reject["file"], reject["line_no"], reject["table"]) == ("x/log.out", 41, "runs")
    assert '"tp":"eight"' in reject["raw"]


def test_raw_text_is_trimmed() -> None:
    reject = validate(RUNS, frame(RUNS, {"layout": "x" * 9_000, "tp": 0})).rejects.row(0, named=True)
    assert len(reject["raw"]) == 2_000


@pytest.mark.parametrize(("table", "column"), [(FILES, "path"), (REJECTS, "file"), (ACCELERATORS, "accelerator")])
def test_tables_without_a_source_path_name_their_own_file(table: Table, column: str) -> None:
    rows = table.empty().clear(1).with_columns(pl.lit("this").alias(column))
    bad = rows.with_columns(**{name: pl.lit(None) for name in table.required if name != column}).with_columns(
        **({"bytes": pl.lit(-1)} if table is FILES else {"memory_bytes": pl.lit(-1)} if table is ACCELERATORS else {})
    )
    rejects = validate(table, bad).rejects
    assert set(rejects["file"]) == {"this"}


def test_keeps_the_first_of_repeated_keys() -> None:
    rows = frame(STEPS, {"step": 1, "loss": 1.0}, {"step": 2}, {"step": 1, "loss": 2.0, "line_no": 9})
    checked = validate(STEPS, rows)
    assert checked.valid.select("step", "loss").rows() == [(1, 1.0), (2, None)]
    assert checked.rejects.select("line_no", "reason").rows() == [
        (9, "repeats the key of an earlier row (run_id, step)")
    ]


def test_a_bad_row_does_not_take_the_key_of_a_good_one() -> None:
    checked = validate(STEPS, frame(STEPS, {"step_time_s": -1.0}, {"step_time_s": 2.0, "line_no": 2}))
    assert checked.valid["step_time_s"].to_list() == [2.0]
    assert checked.rejects["line_no"].to_list() == [1]


def test_null_is_a_key_value_where_the_table_allows_it() -> None:
    row = {"file": "a", "line_no": None, "table": None, "column": None, "reason": "binary file", "raw": ""}
    checked = validate(REJECTS, pl.DataFrame([row, row, {**row, "reason": "other"}]))
    assert checked.valid["reason"].to_list() == ["binary file", "other"]
    assert checked.rejects.height == 1


def test_values_that_fit_are_cast_without_a_word() -> None:
    rows = frame(RUNS, {"tp": "8", "step_time_s": 2, "pp": 4.0}).with_columns(dp=pl.lit(2, pl.Int8))
    checked = validate(RUNS, rows)
    assert checked.valid.select("tp", "step_time_s", "pp", "dp").rows() == [(8, 2.0, 4, 2)]


def test_an_unknown_column_is_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="has no column colour"):
        validate(RUNS, frame(RUNS, {"colour": "red"}))


def test_the_environment_cannot_switch_validation_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDERA_VALIDATION_ENABLED", "False")
    from pandera.config import config_context

    with config_context(validation_enabled=False):
        assert validate(RUNS, frame(RUNS, {"tp": 0})).rejects.height == 1


def test_merged_rejects_keep_a_count() -> None:
    row = {"file": "a", "line_no": 3, "table": "steps", "column": None, "reason": "odd", "raw": "x"}
    merged = merge_rejects(pl.DataFrame([row, {**row, "line_no": 4}, row, row]))
    assert merged.select("line_no", "reason").rows() == [(3, "odd (3 times)"), (4, "odd")]
    assert validate(REJECTS, merged).rejects.is_empty()


_ANY_ROW = st.fixed_dictionaries(
    {
        "run_id": st.sampled_from(["a", "b", None]),
        "step": st.one_of(st.integers(-1, 3), st.none()),
        "loss": st.one_of(st.floats(), st.none()),
        "step_time_s": st.sampled_from([None, -1.0, 0.0, 1.5]),
        "source_path": st.sampled_from(["x.log", None]),
        "line_no": st.one_of(st.integers(0, 2), st.none()),
    }
)


def _typed(rows: list[dict[str, Any]]) -> pl.DataFrame:
    names = ("run_id", "step", "loss", "step_time_s", "source_path", "line_no")
    return pl.DataFrame(rows, schema={name: STEPS.polars_schema[name] for name in names})


@settings(max_examples=60, deadline=None)
@given(st.lists(_ANY_ROW, max_size=8))
def test_what_is_valid_stays_valid(rows: list[dict[str, Any]]) -> None:
    once = validate(STEPS, _typed(rows))
    twice = validate(STEPS, once.valid)
    assert twice.valid.equals(once.valid)
    assert twice.rejects.is_empty()
    assert validate(REJECTS, once.rejects).rejects.is_empty()


@settings(max_examples=60, deadline=None)
@given(st.lists(_ANY_ROW, max_size=8), st.integers(0, 8))
def test_shards_sum_to_the_whole(rows: list[dict[str, Any]], cut: int) -> None:
    """Keys apart (they can repeat across shards), a row's verdict does not depend on its neighbours."""
    keyed = [{**row, "step": number} if row["step"] is not None else row for number, row in enumerate(rows)]
    whole = validate(STEPS, _typed(keyed))
    shards = [validate(STEPS, _typed(part)) for part in (keyed[:cut], keyed[cut:])]
    assert pl.concat([shard.valid for shard in shards]).equals(whole.valid)


def test_a_hundred_thousand_good_runs_take_well_under_two_seconds() -> None:
    n = 100_000
    rows = (
        RUNS.empty()
        .clear(n)
        .with_columns(
            run_id=pl.int_range(n).cast(pl.String),
            source_path=pl.lit("a.log"),
            status=pl.lit("completed"),
            tp=pl.lit(8),
        )
    )
    pandera_schema(RUNS)
    start = time.perf_counter()
    assert validate(RUNS, rows).valid.height == n
    assert time.perf_counter() - start < 2.0
