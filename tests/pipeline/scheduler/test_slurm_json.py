"""Slurm's JSON, old and new, gives the rows that its tables give."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.scheduler import registry, slurm_json


def number(value: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": value}


NEW: dict[str, Any] = {
    "account": "ml",
    "allocation_nodes": 2,
    "job_id": 410022,
    "name": "tp=8|pp=2",
    "partition": "gpu",
    "array": {"job_id": 0, "task_id": {"set": False, "infinite": False, "number": 0}},
    "cluster": "c1",
    "state": {"current": ["TIMEOUT"], "reason": "None"},
    "exit_code": {"status": ["SUCCESS"], "return_code": number(0), "signal": {"id": number(15), "name": "TERM"}},
    "time": {
        "elapsed": 86412,
        "submission": 1716804000,
        "start": 1716807605,
        "end": 1716894017,
        "limit": number(1440),
    },
    "nodes": "gpu[09-10]",
    "working_directory": "/scratch/run",
    "tres": {
        "allocated": [
            {"type": "cpu", "name": "", "count": 32},
            {"type": "gres", "name": "gpu", "count": 16},
            {"type": "gres", "name": "gpu:a100", "count": 16},
            {"type": "node", "name": "", "count": 2},
        ]
    },
    "steps": [
        {
            "step": {"id": "410022.batch", "name": "batch"},
            "state": ["CANCELLED"],
            "exit_code": {"return_code": number(0), "signal": {"id": number(9)}},
            "nodes": {"count": 1, "range": "gpu09"},
            "time": {"elapsed": 86414, "start": number(1716807605)},
            "tres": {"requested": {"max": [{"type": "mem", "count": 216551424}]}},
        }
    ],
}
OLD: dict[str, Any] = {
    "job_id": 7,
    "array": {"job_id": 5, "task_id": 3},
    "name": "a",
    "state": {"current": "OUT_OF_MEMORY"},
    "exit_code": {"status": "ERROR", "return_code": 0, "signal": {"signal_id": 125}},
    "time": {"elapsed": 10, "start": 1716807605, "end": 0, "limit": None},
    "nodes": "None assigned",
}
QUEUED: dict[str, Any] = {
    "account": "ml",
    "job_id": 9,
    "array_job_id": number(0),
    "array_task_id": {"set": False},
    "name": "x",
    "job_state": ["RUNNING", "CONFIGURING"],
    "start_time": number(1716807605),
    "node_count": number(4),
    "tres_alloc_str": "cpu=4,gres/gpu=32",
    "current_working_directory": "/w",
    "restart_cnt": 1,
    "nodes": "n[1-4]",
}


def rows_of(*jobs: dict[str, Any], indent: int | None = 2) -> pl.DataFrame:
    text = json.dumps({"meta": {"Slurm": {"version": {"major": 23}}}, "jobs": list(jobs)}, indent=indent)
    table = registry.recognise(text[:8192])
    assert table is not None
    assert table.name == "slurm-json"
    ((rows, rejects),) = table.read(text.splitlines())
    assert rejects.is_empty()
    return rows


@pytest.mark.parametrize("indent", [None, 2])
def test_a_job_and_its_step(indent: int | None) -> None:
    job, step = rows_of(NEW, indent=indent).iter_rows(named=True)
    assert (job["line_no"], job["job_id"], job["job_step"], job["job_name"]) == (1, "410022", None, "tp=8|pp=2")
    assert (job["job_state"], job["exit_code"], job["exit_signal"]) == ("timeout", 0, 15)
    assert (job["started_at"], job["ended_at"]) == (datetime(2024, 5, 27, 11, 0, 5), datetime(2024, 5, 28, 11, 0, 17))
    assert (job["elapsed_s"], job["time_limit_s"], job["queue_wait_s"]) == (86412, 86400, 3605)
    assert (job["num_nodes"], job["num_gpus"], job["hosts"]) == (2, 16, "gpu09, gpu10")
    assert (job["work_dir"], job["cluster"]) == ("/scratch/run", "c1")
    assert (step["line_no"], step["job_id"], step["job_step"], step["exit_signal"]) == (2, "410022", "batch", 9)
    assert (step["host_mem_peak_bytes"], step["hosts"]) == (216551424, "gpu09")


def test_plain_numbers_of_old_versions() -> None:
    (job,) = rows_of(OLD).iter_rows(named=True)
    assert (job["job_id"], job["exit_signal"], job["ended_at"]) == ("5_3", 125, None)
    assert job["time_limit_s"] is None


def test_a_job_of_squeue() -> None:
    (job,) = rows_of(QUEUED).iter_rows(named=True)
    assert (job["job_id"], job["job_state"], job["num_nodes"], job["num_gpus"]) == ("9", "running", 4, 32)
    assert (job["work_dir"], job["restarts"]) == ("/w", 1)


def test_a_list_that_breaks_off_is_a_reject() -> None:
    text = json.dumps({"jobs": [NEW]}, indent=1)[:-9]
    ((rows, rejects),) = slurm_json.read(text.splitlines())
    assert rows.is_empty()
    assert rejects["reason"][0].startswith("not a whole list of jobs")


@pytest.mark.parametrize("text", ['{"loss": 2.5, "step": 1}\n', '{"jobs": []}', "{\n}", '{"jobs": [{"id": 1}]}'])
def test_other_json_is_none(text: str) -> None:
    assert registry.recognise(text) is None
