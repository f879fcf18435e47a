"""Rows of `scheduler_jobs` from the cells of a scheduler's table by the name of their column. Pure; whole columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.reference.vocabulary import map_words
from sweepscope.pipeline.scheduler import slurm_values as slurm
from sweepscope.pipeline.text import host_list
from sweepscope.pipeline.text.secret_columns import shortened
from sweepscope.pipeline.text.secrets import shorten
from sweepscope.schemas.tables.scheduler import SCHEDULER_JOBS

MAX_TEXT_CHARS = 2_000
_MAX_RAW_CHARS = 200

REJECTED = pl.Schema({"line_no": pl.Int64, "column": pl.String, "reason": pl.String, "raw": pl.String})
"""One row per line, or value of a line, that could not be read."""

_IDS = ("jobid", "jobidraw")


@dataclass(frozen=True)
class Column:
    """A column of `scheduler_jobs`, the printed columns that hold it (the best first), and the reader of a value."""

    name: str
    printed: tuple[str, ...]
    read: Callable[[str], object]
    dtype: type[pl.DataType] = pl.Int64


def _text(value: str) -> str | None:
    return value.strip() if value.strip() not in ("", "(null)", "None", "N/A", "Unknown", "n/a") else None


def _count(value: str) -> int | None:
    return int(value) or None if re.fullmatch(r"\s*\d{1,9}\s*", value) else None


def _gpus(value: str) -> int | None:
    return slurm.resource(value, "gres/gpu") or None


def _tres_nodes(value: str) -> int | None:
    return slurm.resource(value, "node") or None


def _hosts(value: str) -> str | None:
    return ", ".join(names) if (names := host_list.hosts(value)) else None


def _reason(value: str) -> str | None:
    """Why a job waits, which squeue prints in brackets in place of hosts."""
    return value.strip()[1:-1] if value.strip().startswith("(") and value.strip().endswith(")") else None


def _raw_minutes(value: str) -> int | None:
    return int(value) * 60 if re.fullmatch(r"\s*\d{1,9}\s*", value) else None


def _step(value: str) -> str | None:
    return slurm.job_and_step(value)[1]


def _job(value: str) -> str | None:
    return slurm.job_and_step(value)[0]


# sacct(1) --helpformat, squeue(1) --Format and -o, scontrol show job. Names as printed, in lower case.
COLUMNS = (
    Column("cluster", ("cluster",), _text, pl.String),
    Column("job_id", _IDS, _job, pl.String),
    Column("job_id_raw", ("jobidraw",), _job, pl.String),
    Column("job_step", _IDS, _step, pl.String),
    Column("job_name", ("jobname", "name"), _text, pl.String),
    Column("job_partition", ("partition",), _text, pl.String),
    Column("job_state", ("state", "jobstate", "st"), slurm.state, pl.String),
    Column("job_reason", ("reason",), _text, pl.String),
    Column("job_reason", ("nodelist(reason)",), _reason, pl.String),
    Column("job_reason", ("state", "jobstate"), slurm.cancelled_by, pl.String),
    Column("exit_code", ("exitcode", "derivedexitcode"), slurm.exit_code),
    Column("exit_signal", ("exitcode", "derivedexitcode"), slurm.exit_signal),
    Column("submitted_at", ("submit", "submittime", "submit_time"), slurm.moment, pl.Datetime),
    Column("started_at", ("start", "starttime", "start_time"), slurm.moment, pl.Datetime),
    Column("ended_at", ("end", "endtime", "end_time"), slurm.moment, pl.Datetime),
    Column("elapsed_s", ("elapsedraw", "elapsed", "runtime", "time", "time_used"), slurm.seconds),
    Column("time_limit_s", ("timelimit", "time_limit", "time_limi"), slurm.seconds),
    Column("time_limit_s", ("timelimitraw",), _raw_minutes),
    Column("restarts", ("restarts", "restartcnt"), slurm.seconds),
    Column("num_nodes", ("nnodes", "allocnodes", "nodes", "numnodes"), _count),
    Column("num_nodes", ("alloctres", "tres"), _tres_nodes),
    Column("num_gpus", ("alloctres", "tres", "reqtres"), _gpus),
    Column("accelerator", ("alloctres", "tres", "reqtres"), slurm.gpu_type, pl.String),
    Column("hosts", ("nodelist", "nodelist(reason)"), _hosts, pl.String),
    Column("host_mem_peak_bytes", ("maxrss",), slurm.memory_bytes),
    Column("work_dir", ("workdir", "work_dir"), _text, pl.String),
    Column("stdout_path", ("stdout",), _text, pl.String),
)

PRINTED = frozenset(name for column in COLUMNS for name in column.printed)
"""Every printed column that is read, in lower case."""


def without_commands(lines: Sequence[str], command: re.Pattern[str]) -> Iterator[str]:
    """Lines that are neither blank nor an echoed command."""
    return (line for line in lines if line.strip() and not command.match(line))


def looks_like_header(cells: Sequence[str]) -> bool:
    """Whether the cells of a line name columns: a job's id, and at least one more that is read.

    >>> looks_like_header(["JobID", "JobName", "State"]), looks_like_header(["123", "COMPLETED"])
    (True, False)
    """
    names = {cell.strip().lower() for cell in cells}
    return bool(names & set(_IDS)) and len(names & PRINTED) >= 2


def rows_of(
    cells: Mapping[str, Sequence[str]], line_no: Sequence[int], text: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of `scheduler_jobs` (without the file's own columns), and REJECTED rows.

    A line whose job id cannot be read is left out; an unreadable state becomes NULL. Both are rejected. Any other
    unreadable value becomes NULL.

    Args:
        cells: printed column in lower case -> its values.
        line_no: number of each line.
        text: content of each line.
    """
    printed = {name: pl.Series(name, list(values), dtype=pl.String) for name, values in cells.items()}
    frame = pl.DataFrame(
        {
            "line_no": pl.Series(list(line_no), dtype=pl.Int64),
            "text": pl.Series(list(text), dtype=pl.String).str.strip_chars(),
            "scheduler": pl.repeat("slurm", len(line_no), dtype=pl.String, eager=True),
        }
    )
    frame = frame.with_columns(shortened(pl.col("text"), MAX_TEXT_CHARS))
    for column in COLUMNS:
        known = [_read(printed[name], column) for name in column.printed if name in printed]
        have = [frame[column.name]] if column.name in frame.columns else []
        if known or have:
            frame = frame.with_columns(pl.coalesce(*have, *known).alias(column.name))
    wait_s = (pl.col("started_at") - pl.col("submitted_at")).dt.total_seconds()
    is_job = pl.col("job_step").is_null()  # a step is submitted by its job, once that has started
    whole = SCHEDULER_JOBS.conform(frame).with_columns(queue_wait_s=pl.when(is_job & (wait_s >= 0)).then(wait_s))
    states = [printed[name] for name in ("state", "jobstate", "st") if name in printed]
    is_odd = whole["job_state"].is_null() & (states[0].str.strip_chars() != "") if states else None
    rejected = [_rejected(whole.filter(pl.col("job_id").is_null()), "job_id", "the job id cannot be read")]
    if is_odd is not None:
        odd = whole.filter(is_odd & whole["job_id"].is_not_null())
        rejected.append(_rejected(odd, "job_state", "not a state of Slurm, or cut too short to recognise"))
    return whole.drop_nulls("job_id"), pl.concat(rejected)


def conform_rows(rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """Rows of `scheduler_jobs` (without the file's own columns) from mappings of column to value."""
    shape = SCHEDULER_JOBS.empty()
    frame = pl.DataFrame(rows, schema=shape.schema) if rows else shape
    return frame.with_columns(shortened(pl.col("text"), MAX_TEXT_CHARS))


def rejected_line(line_no: int, line: str, reason: str, *, column: str | None = None) -> dict[str, object]:
    """A row of REJECTED."""
    return {"line_no": line_no, "column": column, "reason": reason, "raw": shorten(line, _MAX_RAW_CHARS)}


def _read(values: pl.Series, column: Column) -> pl.Series:
    dtype = pl.Datetime("us") if column.dtype is pl.Datetime else column.dtype
    return map_words(values, column.read, dtype).alias(column.name)  # type: ignore[arg-type]  # an instance is a type here


def _rejected(rows: pl.DataFrame, column: str, reason: str) -> pl.DataFrame:
    return rows.select("line_no", column=pl.lit(column), reason=pl.lit(reason), raw=pl.col("text")).cast(REJECTED)
