"""Tables of results in a sweep: alone they are its runs; beside logs each run stays one, and what they know is added."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweepscope.pipeline.logs.runs import same_runs
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect, current
from tests.pipeline.ingest.lake_of_logs import LakeOfLogs
from tests.workbooks import workbook

LAYOUTS = ((8, 1, 2), (4, 2, 4), (2, 4, 8))


def log_of(dp: int, tp: int, mbs: int, step_time_s: float) -> str:
    head = f"world size: 8, dp: {dp}, tp: {tp}\nmicro batch size: {mbs}, grad accum steps: 4, seq length: 2048\n"
    steps = [f"step {step} loss {9 / step:.4f} step_time {step_time_s:.3f}s\n" for step in range(1, 31)]
    return head + "".join(steps) + "training complete\n"


@pytest.fixture
def logs(tmp_path: Path) -> LakeOfLogs:
    return LakeOfLogs(tmp_path)


def shown(logs: LakeOfLogs) -> list[dict[str, Any]]:
    """Rows of `runs` that count."""
    home = Home.resolve(str(logs.path / "home"))
    publish(home)
    with connect(current(home.path)) as store:
        rows = store.sql("SELECT * FROM runs WHERE duplicate_of IS NULL ORDER BY source_path, line_no").pl().to_dicts()
    return list(rows)


def put_logs(logs: LakeOfLogs) -> None:
    for number, (dp, tp, mbs) in enumerate(LAYOUTS):
        logs.write(f"jobs/{number}/out.log", log_of(dp, tp, mbs, 1.0 + number / 4))


@pytest.mark.parametrize("is_table_first", [True, False])
def test_rows_of_logs_lend_them_what_only_the_table_knows(logs: LakeOfLogs, *, is_table_first: bool) -> None:
    rows = [f"8,{dp},{tp},{mbs},4,{1.05 + number / 4:.2f},A100,ok" for number, (dp, tp, mbs) in enumerate(LAYOUTS)]
    table = "\n".join(["gpus,dp,tp,mbs,ga,iter time (s),gpu,status", *rows, "8,1,8,8,4,,A100,OOM"])
    writes: list[Callable[[], object]] = [lambda: put_logs(logs), lambda: logs.write("results.csv", table)]
    for write in writes[::-1] if is_table_first else writes:
        write()
        logs.ingest()
    *of_logs, failed = shown(logs)
    assert [(run["dp"], run["tp"], run["step_time_s"], run["accelerator"]) for run in of_logs] == [
        (8, 1, 1.0, "A100"),
        (4, 2, 1.25, "A100"),
        (2, 4, 1.5, "A100"),
    ]
    assert (failed["tp"], failed["status"], failed["status_evidence"]) == (8, "oom", "status: OOM")


def test_a_row_that_names_a_log_is_its_whatever_it_measured(logs: LakeOfLogs) -> None:
    put_logs(logs)
    rows = [json.dumps({"run": f"jobs/{n}", "config": {"tp": 1, "mbs": 2}, "result": {"tok/s": 7}}) for n in range(4)]
    logs.write("sweep_results.jsonl", "\n".join(rows))
    logs.ingest()
    assert [run["source_path"].rpartition("/")[2] for run in shown(logs)] == ["out.log"] * 3 + ["sweep_results.jsonl"]


def test_a_table_in_the_folder_of_each_run_doubles_none(logs: LakeOfLogs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_runs, "_MAX_PAIRS", 4)  # fewer than the runs and tables of the sweep make
    put_logs(logs)
    for number, (dp, tp, mbs) in enumerate(LAYOUTS):
        row = f"8,{dp},{tp},{mbs},4,{1.0 + number / 4}"
        logs.write(f"jobs/{number}/results.csv", f"gpus,dp,tp,mbs,ga,s/it\n{row}\n")
    logs.ingest()
    assert [run["source_path"].rpartition("/")[2] for run in shown(logs)] == ["out.log"] * 3


def test_the_result_in_the_folder_of_a_run_is_that_runs(logs: LakeOfLogs) -> None:
    put_logs(logs)
    result = {"config": {"tensor_parallel": 2, "seq_len": 2048}, "metrics": {"mfu": 0.41, "peak_mem_gb": 51.5}}
    logs.write("jobs/1/results.json", json.dumps(result, indent=1))
    logs.write(
        "jobs/2/results.json", json.dumps(result | {"config": {"tensor_parallel": 1, "seq_len": 2048}}, indent=1)
    )
    logs.ingest()
    of_logs, other = shown(logs)[:3], shown(logs)[3:]
    assert [(run["tp"], run["mfu_logged"]) for run in of_logs] == [(1, None), (2, 0.41), (4, None)]
    assert [(run["tp"], run["source_path"][-19:]) for run in other] == [(1, "jobs/2/results.json")]


def test_repeats_in_a_table_are_runs_of_their_own(logs: LakeOfLogs) -> None:
    logs.write("results.csv", "gpus,tp,mbs,note,tok/s\n" + "".join(f"8,2,4,try {n},{9000 + n}\n" for n in range(3)))
    logs.ingest()
    found = shown(logs)
    assert [run["tokens_per_s"] for run in found] == [9000, 9001, 9002]
    assert len({run["options_id"] for run in found}) == 1
    assert {run["origin"] for run in found} == {"measured"}


def test_a_table_read_again_with_more_rows_doubles_nothing(logs: LakeOfLogs) -> None:
    rows = ["gpus,tp,mbs,tok/s", "8,2,4,9000"]
    logs.write("results.csv", "\n".join(rows))
    logs.ingest()
    first = {run["run_id"] for run in shown(logs)}
    logs.write("results.csv", "\n".join([*rows, "8,4,4,8000"]))
    logs.ingest()
    again = {run["run_id"] for run in shown(logs)}
    assert first < again
    assert len(again) == 2


def test_runs_of_another_sweep_or_card_are_no_rows_of_a_table(logs: LakeOfLogs) -> None:
    put_logs(logs)
    logs.write("other/results.csv", "gpus,dp,tp,mbs,ga,s/it\n8,8,1,2,4,1.0\n")
    logs.write("jobs/results.csv", "gpus,dp,tp,mbs,ga,s/it,gpu\n8,8,1,2,4,2.0,A100\n8,4,2,4,4,1.3,A100\n")
    logs.ingest()
    assert [run["source_path"].rpartition("/")[2] for run in shown(logs)] == ["out.log"] * 3 + ["results.csv"] * 2


DOCUMENT = """# Sweep on A100

| gpus | tp | mbs | tok/s/gpu |
|---:|---:|---:|:---|
| 8 | 1 | 2 | **9,100** |
| 8 | 2 | 8 | OOM |
"""
DRIVER = """launching trial 1: tp=4
trial 1 failed: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
launching trial 2: tp=8
 gpus    tp    mbs    step time (s)
-----  ----  -----  ---------------
    8     4      2  OOM
    8     8      2  1.25
"""


def test_documents_workbooks_and_logs_of_drivers_list_runs(logs: LakeOfLogs) -> None:
    logs.write("notes/README.md", DOCUMENT)
    logs.write("driver/sweep.log", DRIVER)
    sheet = [["Third"], [], ["gpus", "tp", "mbs", "MFU (%)"], [16, 2, 1, 41.5]]
    logs.write("excel/sweep.xlsx", workbook({"notes": [["by me"]], "runs": sheet}))
    logs.ingest()
    rows = [(run["line_no"], run["tp"], run["status"], run["step_time_s"], run["mfu_logged"]) for run in shown(logs)]
    assert rows == [
        (6, 4, "oom", None, None),
        (7, 8, "completed", 1.25, None),
        (5, 2, "completed", None, 0.415),
        (5, 1, "completed", None, None),
        (6, 2, "oom", None, None),
    ]


def test_documents_without_a_table_of_runs_are_skipped_as_other_files(logs: LakeOfLogs) -> None:
    put_logs(logs)
    logs.write("README.md", "# Mine\n\n| model | license |\n|---|---|\n| a | MIT |\n")
    logs.write("budget.xlsx", workbook({"a": [["item", "price"], ["gpu", 2]]}))
    logs.ingest()
    rows = logs.lake.read("files").select("path", "kind", "status").rows()
    files = {path.rpartition("/")[2]: rest for path, *rest in rows}
    assert files["README.md"] == files["budget.xlsx"] == ["other", "skipped"]
    assert logs.lake.read("rejects").is_empty()
