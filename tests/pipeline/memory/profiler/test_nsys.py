"""Reports of Nsight Systems: what Kineto's trace of the same work says, processes kept apart, names of steps."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from sweepscope.pipeline.memory.profiler import nsys
from tests.pipeline.ingest_in_memory import batch_of
from tests.pipeline.memory.profiler.cuda_traces import (
    GEMM,
    OPERATIONS,
    START_US,
    STEP_US,
    STEPS,
    Span,
    rendered,
    spans_of,
)
from tests.pipeline.memory.profiler.test_step_timeline import rows_of

# The columns that are read, and some that are not, as NVIDIA's "SQLite Schema Reference" declares them.
SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
  shortName INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  globalPid INTEGER, bytes INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER,
  textId INTEGER, domainId INTEGER);
"""
_VM, _PUSH_POP = 1 << 56, 59


class Report:
    """A report in memory; times in microseconds."""

    def __init__(self, schema: str = SCHEMA) -> None:
        self._connection, self._strings = sqlite3.connect(":memory:"), dict[str, int]()
        self._connection.executescript(schema)

    def string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._strings) + 1
            self._connection.execute("INSERT INTO StringIds VALUES (?, ?)", (self._strings[text], text))
        return self._strings[text]

    def work(self, spans: list[Span], *, pid: int) -> None:
        """Kernels and copies of a process."""
        of_process = _VM | pid << 24
        for span in spans:
            begin = (START_US + span.step * STEP_US + span.begin) * 1_000
            times = (begin, begin + span.length * 1_000)
            if span.kind == "copy":
                self._connection.execute(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 0, ?, 64)", (*times, of_process)
                )
                continue
            name = self.string(GEMM if span.kind == "gemm" else OPERATIONS[span.kind])
            self._connection.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, 1, ?, ?, ?)",
                (*times, of_process, name, name),
            )

    def range(self, name: str, step: int, *, pid: int, length: float = STEP_US, by_id: bool = False) -> None:
        """A range of the thread that has the process' number."""
        begin = START_US + step * STEP_US
        text, number = (None, self.string(name)) if by_id else (name, None)
        times = (begin * 1_000, int((begin + length) * 1_000))
        thread = _VM | pid << 24 | pid
        self._connection.execute(
            "INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?, 0)", (*times, _PUSH_POP, text, thread, number)
        )

    def data(self) -> bytes:
        self._connection.commit()
        return bytes(self._connection.serialize())

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        names = [name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        tables = {
            name: {column for _, column, *_ in self._connection.execute(f"PRAGMA table_info({name})")} for name in names
        }
        assert nsys.is_export(tables)
        return nsys.read_export(self._connection, tables)


def without_pid(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "pid"} for row in rows]


@pytest.mark.parametrize("by_id", [True, False])
def test_the_same_work_gives_the_rows_of_kinetos_trace(by_id: bool) -> None:
    report = Report()
    report.work(spans_of(0), pid=42)
    for step in range(STEPS):
        report.range(f"ProfilerStep#{step + 7}", step, pid=42, by_id=by_id)
    found, expected = report.rows(), rows_of(rendered(spans_of(0), rank=0))
    assert without_pid(found["trace_collectives"]) == expected["trace_collectives"]
    for row, of_kineto in zip(found["trace_steps"], expected["trace_steps"], strict=True):
        assert row.pop("pid") == 42
        # Kineto's own mark of the CPU is shorter than the GPU's, and neither is in the reports.
        assert row.pop("duration_s") == pytest.approx(of_kineto.pop("duration_s") + 100e-6)
        assert row == pytest.approx(of_kineto)


def test_processes_of_one_report_are_kept_apart() -> None:
    report = Report()
    for pid in (7, 8):
        report.work(spans_of(pid), pid=pid)
        report.range("iteration 1", 0, pid=pid)
    steps = report.rows()["trace_steps"]
    alone = [without_pid(rows_of_one(pid)) for pid in (7, 8)]
    assert [row["pid"] for row in steps] == [7, 8]
    assert without_pid(steps) == [*alone[0], *alone[1]]


def rows_of_one(pid: int) -> list[dict[str, Any]]:
    report = Report()
    report.work(spans_of(pid), pid=pid)
    report.range("iteration 1", 0, pid=pid)
    return report.rows()["trace_steps"]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("ProfilerStep#7", 7),
        ("iteration 12", 12),
        ("train_step: 3", 3),
        ("Step=4", 4),
        ("iter_5", 5),
        ("optimizer step", None),
        ("forward step 3 layer 2", None),
        ("ncclAllReduce", None),
        ("stepwise 3", None),
    ],
)
def test_a_range_is_a_step_by_its_whole_name(name: str, step: int | None) -> None:
    report = Report()
    report.range(name, 0, pid=1)
    assert [row["step"] for row in report.rows()["trace_steps"]] == ([] if step is None else [step])


def test_without_steps_collectives_are_counted_over_the_report() -> None:
    report = Report()
    report.work(spans_of(1), pid=1)
    found = report.rows()
    calls = {row["trace_op"]: (row["calls"], row["traced_steps"]) for row in found["trace_collectives"]}
    assert not found["trace_steps"]
    assert calls == {
        kind: (sum(span.kind == kind for span in spans_of(1)), None)
        for kind in OPERATIONS
        if any(span.kind == kind for span in spans_of(1))
    }


def test_a_report_becomes_rows_of_its_run() -> None:
    report = Report()
    report.work(spans_of(1), pid=1)
    report.range("step 1", 0, pid=1)
    batch = batch_of({"run/rank3_report.sqlite": report.data()})
    (row,) = batch.other["trace_steps"].to_dicts()
    assert (row["rank"], row["pid"], row["step"], Path(row["run_dir"]).name) == (3, 1, 1, "run")
    assert row["exchange_s"] > 0
    assert batch.files.select("kind", "parser", "status").rows() == [("memory", "nsys", "parsed")]


def test_a_report_with_nothing_to_show_says_so() -> None:
    report = Report()
    report.range("forward", 0, pid=1)
    (file,) = batch_of({"run/report.sqlite": report.data()}).files.to_dicts()
    assert (file["status"], "without kernels" in file["error"]) == ("skipped", True)


def test_kernels_without_names_are_an_error() -> None:
    nameless = SCHEMA.replace(",\n  shortName INTEGER NOT NULL", "")
    with pytest.raises(ValueError, match="no column shortName"):
        Report(nameless).rows()
