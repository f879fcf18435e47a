"""validate(): every value is either kept or named in rejects, whatever is wrong with its row."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.ingest.table_laws import pandera_schema
from sweepscope.pipeline.ingest.validate import merge_rejects, validate
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.registry import TABLES
from sweepscope.schemas.tables.ledger import FILES, REJECTS
from sweepscope.schemas.tables.memory import GPU_SAMPLES, MEMORY_SNAPSHOTS
from sweepscope.schemas.tables.published import ACCELERATORS
from sweepscope.schemas.tables.runs import RUNS, STEPS
from sweepscope.schemas.tables.scheduler import SCHEDULER_JOBS


def frame(table: Table, *rows: dict[str, Any]) -> pl.DataFrame:
    """Rows of `table` with good values for its required columns, overridden by `rows`."""
    good = {"source_path": "a.log", "line_no": 1, "path": "a.log", "run_id": "r", "step": 1, "accelerator": "h100"}
    base = {name: good[name] for name in table.required}
    line = {"line_no": 1} if "line_no" in table.column_names else {}
    return pl.DataFrame([{**base, **line, **row} for row in rows], strict=False, infer_schema_length=None)


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


@pytest.mark.parametrize("column", ["run_id", "source_path"])
def test_a_row_without_its_key_or_source_is_left_out(column: str) -> None:
    checked = validate(RUNS, frame(RUNS, {"run_id": "bad", column: None}))
    assert checked.valid.is_empty()
    assert checked.rejects.select("column", "reason").rows() == [(column, "must not be empty")]


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ({"num_nodes": 0}, "num_nodes", "must be at least 1, got 0"),
        ({"step_time_s": 0.0}, "step_time_s", "must be above 0, got 0.0"),
        ({"step_time_s": -2.5}, "step_time_s", "must be above 0, got -2.5"),
        ({"tokens_per_s": float("inf")}, "tokens_per_s", "must be finite, got inf"),
        ({"mfu": float("nan")}, "mfu", "must be finite, got NaN"),
        ({"tokens_per_s": float("-inf")}, "tokens_per_s", "must be at least 0, got -inf"),
        ({"tp": "eight"}, "tp", "cannot be read as Int64, got 'eight'"),
        ({"tp": 2.5}, "tp", "cannot be read as Int64, got 2.5"),
        ({"tp": float("nan")}, "tp", "cannot be read as Int64, got nan"),
        ({"started_at": "yesterday"}, "started_at", "got 'yesterday'"),
        ({"status": "fine"}, "status", "got fine"),
        ({"first_step": 3, "last_step": 2}, "first_step, last_step", "first_step comes after last_step, got 3, 2"),
        (
            {"started_at": datetime(2026, 1, 2), "ended_at": datetime(2026, 1, 1)},
            "started_at, ended_at",
            "started_at comes after ended_at, got 2026-01-02 00:00:00.000000, 2026-01-01 00:00:00.000000",
        ),
        (
            {"mem_peak_allocated_bytes": 70 << 30, "mem_peak_reserved_bytes": 60 << 30},
            "mem_peak_allocated_bytes, mem_peak_reserved_bytes",
            f"mem_peak_allocated_bytes exceeds mem_peak_reserved_bytes, got {70 << 30}, {60 << 30}",
        ),
    ],
)
def test_a_bad_value_becomes_null_and_its_row_is_kept(row: dict[str, Any], column: str, reason: str) -> None:
    checked = validate(RUNS, frame(RUNS, {"run_id": "a", "layout": "DP8", "line_no": 7, **row}))
    assert checked.valid.select("run_id", "layout", *row).rows() == [("a", "DP8", *[None] * len(row))]
    (reject,) = checked.rejects.to_dicts()
    assert (reject["table"], reject["line_no"], reject["column"]) == ("runs", 7, column)
    assert reject["reason"].startswith("the value was left out: ")
    assert reject["reason"].endswith(reason)


@pytest.mark.parametrize(
    ("table", "row", "column"),
    [
        (STEPS, {"mem_allocated_bytes": 3 << 30, "mem_reserved_bytes": 2 << 30}, "mem_allocated_bytes"),
        (SCHEDULER_JOBS, {"started_at": datetime(2026, 1, 2), "ended_at": datetime(2026, 1, 1)}, "started_at"),
        (MEMORY_SNAPSHOTS, {"device": 0, "allocated_bytes": 3, "reserved_bytes": 2}, "allocated_bytes"),
        (MEMORY_SNAPSHOTS, {"device": 0, "peak_allocated_bytes": 3, "peak_reserved_bytes": 2}, "peak_allocated_bytes"),
        (GPU_SAMPLES, {"mem_used_bytes": 81, "mem_total_bytes": 80}, "mem_used_bytes"),
        (GPU_SAMPLES, {"gpu_utilisation": 1.2}, "gpu_utilisation"),
    ],
    ids=lambda value: value.name if isinstance(value, Table) else "",
)
def test_values_that_cannot_be_true_together_become_null(table: Table, row: dict[str, Any], column: str) -> None:
    checked = validate(table, frame(table, row))
    assert checked.valid.height == checked.rejects.height == 1
    assert checked.valid[column].to_list() == [None]


@pytest.mark.parametrize(
    "row",
    [
        {"dp": 8, "tp": 2, "pp": 1, "num_gpus": 16},  # cp is 1 where nothing names it
        {"dp": 8, "tp": 2, "pp": 1, "cp": 2, "ep": 8, "num_gpus": 32},  # ep lies within dp
        {"dp": 8, "tp": 2, "pp": None, "num_gpus": 64},
        {"dp": 8, "gas": 4, "mbs": 2, "gbs": 64, "seq_len": 4096, "gbs_tokens": 64 * 4096},
        {"dp": 8, "gas": None, "mbs": 2, "gbs": 63},
        {"mfu": 1.04},
        {"first_step": 3, "last_step": 3},
        {"mem_peak_allocated_bytes": int(3.4 * 2**30), "mem_peak_reserved_bytes": 3 << 30},  # printed in whole GiB
        {"dp": 1, "tp": 4, "pp": 32, "num_gpus": 64, "origin": "published"},  # in mfu_audit
    ],
)
def test_laws_pass_over_what_is_unknown_rounded_or_published(row: dict[str, Any]) -> None:
    assert validate(RUNS, frame(RUNS, {"run_id": "a", **row})).rejects.is_empty()


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ({"dp": 8, "tp": 2, "pp": 1, "num_gpus": 8}, "dp, tp, pp, cp, num_gpus", "got 8, 2, 1, NULL, 8"),
        ({"dp": 8, "gas": 4, "mbs": 2, "gbs": 63}, "dp, gas, mbs, gbs", "got 8, 4, 2, 63"),
        ({"gbs": 64, "seq_len": 4096, "gbs_tokens": 4096}, "gbs, seq_len, gbs_tokens", "got 64, 4096, 4096"),
        ({"mfu": 1.5}, "mfu", "got 1.5"),
    ],
)
def test_a_contradiction_of_which_no_value_is_known_to_be_wrong_is_reported(
    row: dict[str, Any], column: str, reason: str
) -> None:
    checked = validate(RUNS, frame(RUNS, {"run_id": "a", "origin": "measured", **row}))
    assert checked.valid.select(list(row)).rows() == [tuple(row.values())]
    (reject,) = checked.rejects.to_dicts()
    assert reject["column"] == column
    assert reject["reason"].startswith("the values were kept: ")
    assert reject["reason"].endswith(reason)


def test_a_bad_value_breaks_no_law_as_well() -> None:
    checked = validate(RUNS, frame(RUNS, {"dp": 8, "tp": 2, "pp": 1, "num_gpus": 0, "origin": "measured"}))
    assert checked.rejects["column"].to_list() == ["num_gpus"]


def test_names_the_vocabulary_of_a_word_outside_it() -> None:
    ((column, reason),) = reasons(RUNS, frame(RUNS, {"status_confidence": "certain"}))
    assert (column, reason) == (
        "status_confidence",
        "the value was left out: must be one of: high, medium, low, got certain",
    )


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
    reject = validate(RUNS, frame(RUNS, {"source_path": None, "layout": "x" * 9_000})).rejects.row(0, named=True)
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


def test_good_rows_are_known_without_pandera(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweepscope.pipeline.ingest.validate.pandera_schema", None)
    assert validate(RUNS, frame(RUNS, {"tp": 8, "status": "oom", "mfu": 0.4})).rejects.is_empty()


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


# A validation takes long, however few the rows: few examples of many rows each.
@settings(max_examples=15)
@given(st.lists(_ANY_ROW, max_size=30))
def test_what_is_valid_stays_valid(rows: list[dict[str, Any]]) -> None:
    once = validate(STEPS, _typed(rows))
    twice = validate(STEPS, once.valid)
    assert twice.valid.equals(once.valid)
    assert twice.rejects.is_empty()
    assert validate(REJECTS, once.rejects).rejects.is_empty()


@settings(max_examples=15)
@given(st.lists(_ANY_ROW, max_size=30), st.integers(0, 30))
def test_shards_sum_to_the_whole(rows: list[dict[str, Any]], cut: int) -> None:
    """Keys apart (they can repeat across shards), a row's verdict does not depend on its neighbours."""
    keyed = [{**row, "step": number} if row["step"] is not None else row for number, row in enumerate(rows)]
    whole = validate(STEPS, _typed(keyed))
    shards = [validate(STEPS, _typed(part)) for part in (keyed[:cut], keyed[cut:])]
    assert pl.concat([shard.valid for shard in shards]).equals(whole.valid)


def test_a_hundred_thousand_good_runs_take_no_long_time() -> None:
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
    start = time.process_time()  # of all threads: a busy machine must not fail it
    assert validate(RUNS, rows).valid.height == n
    assert time.process_time() - start < 10
