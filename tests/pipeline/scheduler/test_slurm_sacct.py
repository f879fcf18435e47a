"""Tables of sacct and squeue as Slurm prints them: delimited, of fixed width, without a header, one after another."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.scheduler import slurm_sacct
from sweepscope.schemas.vocab.scheduler import JOB_STATE
from tests.properties import draws

PARSABLE = """\
JobID|JobName|Partition|State|ExitCode|Submit|Start|End|Elapsed|Timelimit|NNodes|NodeList|AllocTRES|MaxRSS|WorkDir
410022|llama 7b|gpu|TIMEOUT|0:0|2024-05-27T10:00:00|2024-05-27T11:00:05|2024-05-28T11:00:17|1-00:00:12|1-00:00:00|2|\
gpu[09-10]|billing=2,cpu=2,gres/gpu:a100=16,gres/gpu=16,mem=6G,node=2||/scratch/run
410022.batch|batch||CANCELLED|0:15|2024-05-27T11:00:05|2024-05-27T11:00:05|2024-05-28T11:00:19|1-00:00:14||1|gpu09|\
cpu=2,gres/gpu=16|211488K|
410022.extern|extern||COMPLETED|0:0|2024-05-27T11:00:05|2024-05-27T11:00:05|2024-05-28T11:00:17|1-00:00:12||2|\
gpu[09-10]|cpu=2|4K|
410022.0|python||CANCELLED|0:9|2024-05-27T11:00:10|2024-05-27T11:00:10|2024-05-28T11:00:19|1-00:00:09||2|\
gpu[09-10]|cpu=2|98.50G|
410023_7|array|gpu|CANCELLED by 1000|0:0|2024-05-27T10:00:00|Unknown|Unknown|00:00:00|02:00:00|4|None assigned|||/scratch
"""

FIXED = """\
       JobID    JobName  Partition    Account  AllocCPUS      State ExitCode     MaxRSS
------------ ---------- ---------- ---------- ---------- ---------- -------- ----------
22105866      a long n+ background       mgmt         20 OUT_OF_ME+    0:125
22105866.ba+      batch                  mgmt         20 OUT_OF_ME+    0:125      1180K
22105866.ex+     extern                  mgmt         20  COMPLETED      0:0       992K
22105867        TestJob background       mgmt         20 CANCELLED+      0:0
"""

SQUEUE = """\
             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
           4953690     batch     test  someone  R 2-01:02:03      2 gpu[1-2]
           4953691     batch     test  someone PD       0:00     16 (Nodes required for job are DOWN, DRAINED or reserved)
"""


def read(text: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    parts = list(slurm_sacct.read(text.splitlines(keepends=True)))
    return pl.concat([rows for rows, _ in parts]), pl.concat([rejects for _, rejects in parts])


def only(text: str) -> pl.DataFrame:
    rows, rejects = read(text)
    assert rejects.is_empty(), rejects.to_dicts()
    return rows


class TestDelimited:
    def test_a_job_with_all_that_is_printed_of_it(self) -> None:
        job = only(PARSABLE).row(0, named=True)
        assert {name: value for name, value in job.items() if value is not None and name != "text"} == {
            "scheduler": "slurm",
            "job_id": "410022",
            "job_name": "llama 7b",
            "job_partition": "gpu",
            "job_state": "timeout",
            "exit_code": 0,
            "exit_signal": 0,
            "submitted_at": datetime(2024, 5, 27, 10),
            "started_at": datetime(2024, 5, 27, 11, 0, 5),
            "ended_at": datetime(2024, 5, 28, 11, 0, 17),
            "elapsed_s": 86_412,
            "time_limit_s": 86_400,
            "queue_wait_s": 3605,
            "num_nodes": 2,
            "num_gpus": 16,
            "accelerator": "a100",
            "hosts": "gpu09, gpu10",
            "work_dir": "/scratch/run",
            "line_no": 2,
        }
        assert job["text"].startswith("410022|llama 7b|gpu|TIMEOUT|0:0|")

    def test_steps_keep_their_name_state_signal_and_memory(self) -> None:
        steps = (
            only(PARSABLE)
            .filter(pl.col("job_id") == "410022")
            .select("job_step", "job_state", "exit_signal", "host_mem_peak_bytes", "queue_wait_s")
        )
        assert steps.rows()[1:] == [
            ("batch", "cancelled", 15, 211488 * 1024, None),
            ("extern", "completed", 0, 4096, None),
            ("0", "cancelled", 9, int(98.5 * 2**30), None),
        ]

    def test_a_job_that_never_started_has_no_times_and_no_hosts(self) -> None:
        job = only(PARSABLE).row(4, named=True)
        assert (job["job_id"], job["job_state"], job["job_reason"]) == ("410023_7", "cancelled", "cancelled by 1000")
        assert (job["started_at"], job["ended_at"], job["hosts"], job["queue_wait_s"]) == (None, None, None, None)

    @pytest.mark.parametrize("mark", ["|", "\t", ";"])
    def test_any_delimiter_any_columns_and_a_mark_at_the_end(self, mark: str) -> None:
        lines = ["State|Foo|JobIDRaw|ElapsedRaw|", "NODE_FAIL|bar|7|61|", "DEADLINE||8|5|"]
        rows = only("\n".join(lines).replace("|", mark))
        assert rows.select("job_id", "job_id_raw", "job_state", "elapsed_s").rows() == [
            ("7", "7", "node_fail", 61),
            ("8", "8", "deadline", 5),
        ]

    def test_tables_that_were_appended_one_after_the_other_may_differ_in_columns(self) -> None:
        rows = only("JobID|State\n1|RUNNING\nJobID|State\n1|COMPLETED\nJobID|ExitCode|State\n2|1:0|FAILED\n")
        assert rows.select("line_no", "job_id", "job_state", "exit_code").rows() == [
            (2, "1", "running", None),
            (4, "1", "completed", None),
            (6, "2", "failed", 1),
        ]

    def test_without_a_header_values_say_what_they_are(self) -> None:
        job = only(
            "9|COMPLETED|0:0|2024-05-27T11:00:05|2024-05-27T12:00:05|01:00:00|cpu=2,gres/gpu=8\n"
            "9.batch|COMPLETED|0:0|2024-05-27T11:00:05|2024-05-27T12:00:05|01:00:00|cpu=2\n"
        ).row(0, named=True)
        assert (job["job_id"], job["job_state"], job["exit_code"], job["elapsed_s"]) == ("9", "completed", 0, 3600)
        assert (job["started_at"], job["ended_at"]) == (
            datetime(2024, 5, 27, 11, 0, 5),
            datetime(2024, 5, 27, 12, 0, 5),
        )
        assert (job["num_gpus"], job["submitted_at"]) == (8, None)

    def test_what_does_not_parse_is_rejected_with_its_line(self) -> None:
        rows, rejects = read("JobID|State|ExitCode\n1|COMPLETED\nx9|FAILED|1:0\n2|LOST+|0:0\n3|FAILED|9:0\n")
        assert rows.select("job_id", "job_state").rows() == [("2", None), ("3", "failed")]
        assert rejects.sort("line_no").select("line_no", "column", "raw").rows() == [
            (2, None, "1|COMPLETED"),
            (3, "job_id", "x9|FAILED|1:0"),
            (4, "job_state", "2|LOST+|0:0"),
        ]


class TestFixedWidth:
    def test_the_rule_says_how_wide_a_column_is(self) -> None:
        rows = only(FIXED).select("job_id", "job_step", "job_name", "job_partition", "job_state", "host_mem_peak_bytes")
        assert rows.rows() == [
            ("22105866", None, "a long n+", "background", "out_of_memory", None),
            ("22105866", "batch", "batch", None, "out_of_memory", 1180 * 1024),
            ("22105866", "extern", "extern", None, "completed", 992 * 1024),
            ("22105867", None, "TestJob", "background", "cancelled", None),
        ]

    def test_a_moved_line_is_read_by_words_where_no_cell_is_empty(self) -> None:
        rows, rejects = read(
            FIXED + "  22105868 TestJob background mgmt 20 FAILED 1:0 5K\n  22105868.batch batch mgmt\n"
        )
        assert rows.row(-1, named=True)["job_state"] == "failed"
        assert rejects.select("line_no", "reason").rows() == [(8, "does not have the 8 columns of the header above it")]

    def test_squeue_has_no_rule_and_a_last_column_of_several_words(self) -> None:
        rows = only(SQUEUE).select("job_id", "job_state", "elapsed_s", "num_nodes", "hosts", "job_reason").rows()
        assert rows == [
            ("4953690", "running", 176_523, 2, "gpu1, gpu2", None),
            ("4953691", "pending", 0, 16, None, "Nodes required for job are DOWN, DRAINED or reserved"),
        ]


class TestIsTable:
    @pytest.mark.parametrize(
        "text", [PARSABLE, FIXED, SQUEUE, "$ sacct -j 1 -P\n" + PARSABLE, "1|FAILED|1:0\n1.0|FAILED|1:0"]
    )
    def test_tables_are_told(self, text: str) -> None:
        assert slurm_sacct.is_table(text.splitlines())

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "step: 1 loss: 2.0\n",
            SQUEUE + "step: 1  loss: 9.0  memory: 3GiB\n" * 30,
            "2024-05-27 | INFO | iteration: 1\n2024-05-27 | INFO | iteration: 2",
            "a,b,c\n1,2,3",
        ],
    )
    def test_logs_are_not(self, text: str) -> None:
        assert not slurm_sacct.is_table(text.splitlines())


odd = st.text(st.characters(blacklist_characters="|\n\r", blacklist_categories=["Cs"]), max_size=12)
near = st.from_regex(
    r"[0-9]{1,40}([:.+_=,KMGTP-][0-9]{1,40}){0,3}|gres/gpu=[0-9]{1,40}|n\[[0-9]{1,12}-[0-9]{1,12}\]", fullmatch=True
)
cells = odd | near


@pytest.mark.slow
@settings(max_examples=draws(100))
@given(st.lists(st.lists(cells, min_size=8, max_size=8), max_size=8))
def test_every_line_is_a_row_or_a_reject(rows: list[list[str]]) -> None:
    lines = ["JobID|State|ExitCode|NodeList|AllocTRES|MaxRSS|Elapsed|TimelimitRaw", *("|".join(row) for row in rows)]
    found, rejects = (pl.concat(parts) for parts in zip(*slurm_sacct.read(lines), strict=True))
    written = {number for number, line in enumerate(lines, 1) if line.strip() and number > 1}
    seen = set(found["line_no"].to_list()) | set(rejects["line_no"].to_list())
    assert written - seen == set() or any(line.lower().startswith(("jobid", "-")) for line in lines[1:])
    assert set(found["job_state"].drop_nulls()) <= set(JOB_STATE)


@pytest.mark.parametrize("end", ["", "|"])
def test_a_job_name_may_hold_the_mark(end: str) -> None:
    text = f"JobID|JobName|State|ExitCode{end}\n9|tp=8|pp=2|mbs=1|COMPLETED|0:0{end}\n10|plain|FAILED|1:0{end}\n"
    rows, rejects = read(text)
    assert rows.select("job_id", "job_name", "job_state").rows() == [
        ("9", "tp=8|pp=2|mbs=1", "completed"),
        ("10", "plain", "failed"),
    ]
    assert rejects.is_empty()


def test_a_line_with_too_many_cells_and_no_free_text_is_a_reject() -> None:
    rows, rejects = read("JobID|State|ExitCode\n9|COMPLETED|0:0|x\n10|FAILED|1:0\n")
    assert rows["job_id"].to_list() == ["10"]
    assert rejects["line_no"].to_list() == [2]
