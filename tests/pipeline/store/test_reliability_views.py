"""Outcomes, failure rates, cost and the retry list on small made-up stores; every figure is worked out by hand."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pytest

from sweepscope.schemas import vocab
from tests.run_rows import Row, completed_frame, open_store, rows_of, run_row

_START = datetime(2026, 11, 20, 8, 0)


def ran(run_id: str, minutes: float = 30, *, at: float = 0, **changes: Any) -> Row:
    """A run of `minutes` on 8 GPUs that began `at` minutes after eight."""
    start = _START + timedelta(minutes=at)
    return run_row(run_id, started_at=start, ended_at=start + timedelta(minutes=minutes), **changes)


def died(run_id: str, status: str, minutes: float = 30, *, at: float = 0, **changes: Any) -> Row:
    """The same without a result."""
    return ran(run_id, minutes, at=at, status=status, tokens_per_s_per_gpu=None, **changes)


def ask(sql: str, *runs: Row, events: list[Row] | None = None) -> list[Row]:
    return rows_of(open_store(completed_frame(*runs), events=pl.DataFrame(events) if events else None), sql)


def rates(dimension: str, *runs: Row) -> dict[str, Row]:
    """The rows of one dimension over all sweeps by value."""
    found = ask(f"SELECT * FROM failure_rates WHERE sweep IS NULL AND dimension = '{dimension}'", *runs)
    by_value = {row["value"]: row for row in found}
    assert len(by_value) == len(found)
    return by_value


def in_models(cases: dict[str, list[Row]]) -> list[Row]:
    """The runs of all cases for one store, each case with a model of its own, so that no configuration is shared."""
    return [row | {"run_id": f"{case}: {row['run_id']}", "model": case} for case, rows in cases.items() for row in rows]


def test_every_status_has_a_class() -> None:
    runs = [run_row(status, status=status) for status in vocab.STATUS]
    found = {row["status"]: (row["outcome"], row["is_failure"]) for row in ask("SELECT * FROM run_outcomes", *runs)}
    assert {word for word, _ in found.values()} | {"held"} == set(vocab.OUTCOME)
    assert found == {
        "completed": ("completed", False),
        "oom": ("oom", True),
        "host_oom": ("crash", True),
        "hang": ("hang", True),
        "nccl_error": ("infra", True),
        "crash": ("crash", True),
        "timeout": ("timeout", True),
        "cancelled": ("undecided", None),
        "node_fail": ("infra", True),
        "preempted": ("infra", True),
        "running": ("running", None),
        "truncated": ("unexplained", True),
        "failed": ("unexplained", True),
        "unknown": ("undecided", None),
    }


def test_a_strategy_names_the_dimensions_in_use() -> None:
    runs = [
        run_row("DP"),
        run_row("DP+TP", dp=2, tp=4),
        run_row("none", dp=1, num_gpus=1, gpus_per_node=1, gas=128),
        run_row("TP+PP+CP+EP", dp=1, tp=2, pp=2, cp=2, ep=2, gas=128),
        run_row("unknown", dp=None, tp=None, gas=None),
    ]
    found = {row["run_id"]: row["strategy"] for row in ask("SELECT run_id, strategy FROM run_outcomes", *runs)}
    assert found == {name: name for name in ("DP", "DP+TP", "none", "TP+PP+CP+EP")} | {"unknown": None}


def test_repeats_share_a_configuration_and_unknown_layouts_share_none() -> None:
    unknown: Row = {"dp": None, "tp": None, "pp": None, "cp": None, "gas": None, "mbs": None}
    runs = [
        run_row("a"),
        run_row("b", sweep="other"),
        run_row("c", mbs=4, gas=8),
        run_row("d", **unknown),
        run_row("e", **unknown),
    ]
    found = {row["run_id"]: row["configuration_id"] for row in ask("SELECT * FROM run_outcomes", *runs)}
    assert found["a"] == found["b"]
    assert len(set(found.values())) == 4


def test_the_schedulers_hours_cover_all_attempts_of_a_job() -> None:
    # Logs show 1 h of attempt 1 and half an hour of attempt 2; Slurm held the 8 GPUs for 16 GPU-hours in all.
    runs = [
        died("a1", "node_fail", 60, job_id="7"),
        died("a2", "hang", 30, at=70, job_id="7", allocated_gpu_hours=16.0),
    ]
    found = {row["run_id"]: row for row in ask("SELECT * FROM run_outcomes", *runs)}
    assert (found["a1"]["gpu_hours"], found["a1"]["gpu_hours_idle"]) == (8.0, None)
    assert (found["a2"]["gpu_hours"], found["a2"]["gpu_hours_idle"]) == (8.0, 4.0)


def test_a_failure_rate_leaves_out_what_nobody_can_judge() -> None:
    runs = [
        *(ran(f"good{i}") for i in range(6)),
        *(died(f"oom{i}", "oom", 15) for i in range(3)),
        died("hung", "hang", 60),
        died("stopped", "cancelled"),
        died("alive", "running"),
        died("mystery", "unknown"),
    ]
    row = rates("strategy", *runs)["DP"]
    assert (row["runs_tried"], row["runs_judged"], row["runs_completed"], row["runs_failed"]) == (13, 10, 6, 4)
    assert (row["runs_oom"], row["runs_hang"], row["runs_infra"]) == (3, 1, 0)
    assert row["failure_rate"] == 0.4
    # by hand: (0.4 + 0.19207 -+ 1.96 sqrt(0.024 + 0.009604)) / 1.38415
    assert (row["failure_rate_low"], row["failure_rate_high"]) == (
        pytest.approx(0.1682, abs=1e-4),
        pytest.approx(0.6873, abs=1e-4),
    )
    assert row["gpu_hours_lost"] == pytest.approx(3 * 2 + 8)
    assert row["failures_without_gpu_hours"] == 0


def test_intervals_stay_inside_zero_and_one() -> None:
    row = rates("tp", ran("a"), ran("b"), ran("c"), died("d", "oom", tp=2, dp=4, gas=32))
    # no failure in 3: between 0 and z2 / (n + z2) = 3.8415 / 6.8415
    assert (row["1"]["failure_rate"], row["1"]["failure_rate_low"]) == (0.0, 0.0)
    assert row["1"]["failure_rate_high"] == pytest.approx(0.5615, abs=1e-4)
    assert row["2"]["failure_rate_high"] == 1.0


def test_without_a_judged_run_there_is_no_rate() -> None:
    row = rates("mbs", died("a", "running"))["2"]
    assert (row["runs_tried"], row["runs_judged"], row["failure_rate"], row["failure_rate_high"]) == (1, 0, None, None)


def test_unknown_hours_are_counted_not_zero() -> None:
    clockless: Row = {"started_at": None, "ended_at": None}
    runs = in_models(
        {
            "one": [died("a", "oom") | clockless, died("b", "oom", 15)],
            "all": [died("a", "oom") | clockless],
            "none": [ran("a")],
        }
    )
    row = rates("model", *runs)
    lost = {case: (row[case]["gpu_hours_lost"], row[case]["failures_without_gpu_hours"]) for case in row}
    assert lost == {"one": (2.0, 1), "all": (None, 1), "none": (0.0, 0)}


def test_rates_stand_for_each_sweep_and_for_all() -> None:
    runs = [
        ran("a", sweep="one"),
        died("b", "oom", sweep="one"),
        died("c", "oom", sweep="two"),
        died("d", "oom", sweep=None),
    ]
    found = ask(
        "SELECT sweep, failure_rate, runs_judged FROM failure_rates WHERE dimension = 'tp' ORDER BY sweep", *runs
    )
    assert found == [
        {"sweep": "one", "failure_rate": 0.5, "runs_judged": 2},
        {"sweep": "two", "failure_rate": 1.0, "runs_judged": 1},
        {"sweep": None, "failure_rate": 0.75, "runs_judged": 4},
    ]


def test_origins_and_duplicates_stay_out_of_a_rate() -> None:
    runs = [ran("a"), died("b", "oom", origin="simulated"), died("c", "oom", duplicate_of="elsewhere")]
    found = ask("SELECT origin, failure_rate FROM failure_rates WHERE sweep IS NULL AND dimension = 'tp'", *runs)
    assert sorted((row["origin"], row["failure_rate"]) for row in found) == [("measured", 0.0), ("simulated", 1.0)]


def test_a_run_counts_under_each_of_its_hosts() -> None:
    runs = [ran("a", hosts="node1, node2"), died("b", "node_fail", hosts="node2, node3")]
    row = rates("host", *runs)
    assert (row["node2"]["failure_rate"], row["node3"]["failure_rate"]) == (0.5, 1.0)


def test_a_host_that_only_a_failure_names_has_no_rate() -> None:
    def line(run_id: str, kind: str, host: str) -> Row:
        return {"run_id": run_id, "source_path": "/logs/x", "line_no": 1, "kind": kind, "host": host, "text": kind}

    events = [line("a", "launch", "node1"), line("b", "launch", "node1"), line("b", "exit_code", "node9")]
    found = ask(
        "SELECT value, failure_rate FROM failure_rates WHERE dimension = 'host' AND sweep IS NULL",
        ran("a"),
        died("b", "crash"),
        events=events,
    )
    assert found == [{"value": "node1", "failure_rate": 0.5}]


def test_days_are_those_of_the_start() -> None:
    assert rates("day", ran("a", at=20 * 60))["2026-11-21"]["runs_judged"] == 1


def test_a_sweeps_hours_add_up_by_ending() -> None:
    runs = [
        ran("good"),
        died("oom", "oom", 15),
        died("hung", "hang", 60),
        died("net", "nccl_error", 15),
        died("late", "timeout", 15),
        died("bug", "crash", 15),
        died("host", "host_oom", 15),
        died("cut", "truncated", 15),
        died("stop", "cancelled", 15),
        died("dark", "oom") | {"started_at": None, "ended_at": None},
    ]
    (cost,) = ask("SELECT * FROM sweep_cost", *runs)
    assert {name: cost[name] for name in cost if name.startswith("gpu_hours")} == {
        "gpu_hours": 26.0,
        "gpu_hours_completed": 4.0,
        "gpu_hours_held": 0.0,
        "gpu_hours_idle": None,
        "gpu_hours_startup": None,
        "gpu_hours_oom": 2.0,
        "gpu_hours_hang": 8.0,
        "gpu_hours_infra": 2.0,
        "gpu_hours_timeout": 2.0,
        "gpu_hours_crash": 4.0,
        "gpu_hours_unexplained": 2.0,
        "gpu_hours_undecided": 2.0,
        "gpu_hours_queued": None,
        # one run has no start, so nobody knows what came before the winner
        "gpu_hours_until_winner": None,
        "gpu_hours_of_cells_in_order": None,
    }
    assert (cost["runs_tried"], cost["runs_completed"], cost["runs_failed"]) == (10, 1, 8)
    assert (cost["runs_without_gpu_hours"], cost["cells_answered"], cost["cells_in_order"]) == (1, 1, 0)


def test_hours_held_after_the_end_are_no_hours_of_training() -> None:
    runs = [
        ran("good"),
        # its log spans the hour of its steps and three more, until the scheduler's limit
        ran("in log", 240, held_after_end_s=3 * 3600.0, step_time_s=360.0, first_step=1, last_step=10, startup_s=900.0),
        # its log ends with the last step, and only the job's row tells of the three hours behind it
        ran(
            "beyond",
            60,
            held_after_end_s=3 * 3600.0,
            allocated_gpu_hours=33.0,
            job_id="9",
            step_time_s=360.0,
            last_step=10,
        ),
        # a watchdog says how long it waited; the log has no times
        ran("untimed", held_after_end_s=3600.0) | {"started_at": None, "ended_at": None, "step_time_s": None},
        died("late", "timeout", 15),
    ]
    found = {row["run_id"]: row for row in ask("SELECT * FROM run_outcomes", *runs)}
    assert {name: (row["outcome"], row["is_failure"]) for name, row in found.items()} == {
        "good": ("completed", False),
        "in log": ("held", False),
        "beyond": ("held", False),
        "untimed": ("held", False),
        "late": ("timeout", True),
    }
    hours = {name: (row["gpu_hours"], row["gpu_hours_held"], row["gpu_hours_idle"]) for name, row in found.items()}
    assert hours == {
        "good": (4.0, None, None),
        "in log": (32.0, 24.0, 24.0),
        "beyond": (33.0, 24.0, 25.0),
        "untimed": (8.0, 8.0, 8.0),
        "late": (2.0, None, None),
    }
    (cost,) = ask("SELECT * FROM sweep_cost", *runs)
    assert (cost["gpu_hours"], cost["gpu_hours_completed"], cost["gpu_hours_held"]) == (79.0, 21.0, 56.0)
    assert (cost["gpu_hours_idle"], cost["gpu_hours_startup"], cost["runs_completed"]) == (57.0, 2.0, 4)
    (rate,) = ask("SELECT * FROM failure_rates WHERE sweep IS NULL AND dimension = 'model'", *runs)
    assert (rate["runs_completed"], rate["runs_held"], rate["runs_failed"]) == (4, 3, 1)


def test_steps_from_which_a_later_attempt_went_on_are_kept() -> None:
    def tried(name: str, attempt: int, first: int, last: int, **changes: object) -> Row:
        place = {"run_dir": "/runs/long", "source_path": f"/runs/long/{attempt}.log"}
        return (
            died(name, "node_fail", 60) | place | {"attempt": attempt, "first_step": first, "last_step": last} | changes
        )

    runs = [
        tried("first", 1, 1, 100),  # 40 of its steps are done again
        tried("never logged", 2, 1, 1) | {"first_step": None, "last_step": None},
        tried("second", 3, 61, 160),  # the last one goes on behind it
        tried("last", 4, 161, 260),
        # a directory of two runs, each of which began again
        *(
            tried(f"{log}{attempt}", attempt, 1, 100, run_dir="/runs/two", source_path=f"/runs/two/{log}.log")
            for log in "ab"
            for attempt in (1, 2)
        ),
    ]
    found = {row["run_id"]: row["gpu_hours_kept"] for row in ask("SELECT * FROM run_outcomes", *runs)}
    hours = 8.0
    assert found.pop("first") == pytest.approx(0.6 * hours)
    assert found.pop("second") == pytest.approx(hours)
    assert set(found.values()) == {None}


def test_a_class_whose_hours_nobody_knows_is_unknown_not_zero() -> None:
    (cost,) = ask("SELECT * FROM sweep_cost", ran("a"), died("b", "oom") | {"started_at": None, "ended_at": None})
    assert (cost["gpu_hours_oom"], cost["gpu_hours_hang"]) == (None, 0.0)


def test_the_winner_is_found_at_its_first_run() -> None:
    # 8 GPUs: half an hour is 4 GPU-hours. The winner runs third, again fifth; a fourth run began after it was found.
    runs = [
        ran("slow", at=0, dp=4, tp=2, gas=32, tokens_per_s_per_gpu=30_000.0),
        died("oom", "oom", 15, at=40, mbs=4, gas=8),
        ran("win", at=60, tokens_per_s_per_gpu=40_000.0),
        ran("later", at=100, dp=2, tp=4, gas=64, tokens_per_s_per_gpu=20_000.0),
        ran("again", at=140, tokens_per_s_per_gpu=41_000.0),
    ]
    (cost,) = ask("SELECT * FROM sweep_cost", *runs)
    assert (cost["gpu_hours_until_winner"], cost["gpu_hours_of_cells_in_order"]) == (10.0, 18.0)
    assert (cost["cells_answered"], cost["cells_in_order"]) == (1, 1)


def test_each_cell_has_its_own_winner_and_the_sums_leave_unordered_cells_out() -> None:
    two: Row = {"num_nodes": 2, "num_gpus": 16, "dp": 16, "gas": 8}
    runs = [
        ran("a"),
        ran("b", at=60, **two),
        ran("c", at=0, sweep="other"),
        run_row("d", **two | {"mbs": 1, "gas": 16}),
    ]
    found = {row["sweep"]: row for row in ask("SELECT * FROM sweep_cost", *runs)}
    assert (found["sweep"]["cells_answered"], found["sweep"]["cells_in_order"]) == (2, 1)
    assert (found["sweep"]["gpu_hours_until_winner"], found["sweep"]["gpu_hours"]) == (4.0, 12.0)
    assert found["other"]["gpu_hours_until_winner"] == 4.0


def test_a_jobs_wait_in_the_queue_counts_once() -> None:
    runs = [died("a", "node_fail", job_id="7", queue_wait_s=1800), ran("b", at=60, job_id="7", queue_wait_s=1800)]
    (cost,) = ask("SELECT * FROM sweep_cost", *runs)
    assert cost["gpu_hours_queued"] == 4.0


def test_minutes_that_became_hours_are_stretched() -> None:
    peers = [ran(f"p{i}", minutes) for i, minutes in enumerate((9, 10, 11))]
    layout: Row = {"dp": 4, "tp": 2, "gas": 32}
    stalled = ran("stalled", 120, **layout, first_step=1, last_step=10, step_time_s=6.0)
    (row,) = ask("SELECT * FROM stretched_runs", *peers, stalled, died("dead", "oom", 5))
    assert (row["run_id"], row["duration_s"], row["runs_alike"]) == ("stalled", 7200.0, 4)
    assert row["usual_duration_s"] == 630.0  # the median of 9, 10, 11 and 120 minutes
    assert row["stretch"] == pytest.approx(7200 / 630)
    assert (row["in_steps_s"], row["stretch_cause"]) == (60.0, "outside_of_steps")
    assert row["excess_gpu_hours"] == pytest.approx((7200 - 630) / 3600 * 8)


def test_what_stretched_a_run_is_said_when_its_steps_are_known() -> None:
    cases: dict[str, Row] = {
        "unknown": {"status": "hang"},
        "slow_steps": {"first_step": 1, "last_step": 10, "step_time_s": 700.0},
    }
    odd: Row = {"dp": 4, "tp": 2, "gas": 32, "tokens_per_s_per_gpu": None}
    peers = [ran(f"p{i}", 10) for i in range(3)]
    runs = {cause: [*peers, ran("odd", 120, **odd | changes)] for cause, changes in cases.items()}
    found = {row["run_id"]: row["stretch_cause"] for row in ask("SELECT * FROM stretched_runs", *in_models(runs))}
    assert found == {f"{cause}: odd": cause for cause in cases}


def test_numbers_that_count_no_steps_tell_no_time_in_steps() -> None:
    peers = [ran(f"p{i}", 10) for i in range(3)]
    odd = {"dp": 4, "tp": 2, "gas": 32, "first_step": 1, "last_step": 10, "step_time_s": 700.0, "step_basis": "ordinal"}
    (row,) = ask("SELECT * FROM stretched_runs", *peers, ran("odd", 120, **odd))
    assert (row["in_steps_s"], row["stretch_cause"]) == (None, "unknown")


def test_a_stretch_needs_a_norm_of_the_same_cell_and_steps() -> None:
    cases = {
        "few": [ran("p0", 10), ran("p1", 10), died("long", "hang", 120)],
        "longer": [*(ran(f"p{i}", 10, steps_planned=10) for i in range(3)), ran("long", 120, steps_planned=200)],
        "other": [*(ran(f"p{i}", 10, sweep="other") for i in range(3)), ran("long", 120)],
        "stretched": [*(ran(f"p{i}", 10) for i in range(3)), ran("long", 120)],
    }
    assert [row["run_id"] for row in ask("SELECT * FROM stretched_runs", *in_models(cases))] == ["stretched: long"]


def retry(*runs: Row, events: list[Row] | None = None) -> list[Row]:
    return ask("SELECT * FROM retry_list ORDER BY run_id", *runs, events=events)


def test_what_the_machines_ended_is_worth_another_try() -> None:
    worth = ("node_fail", "preempted", "nccl_error", "hang")
    rows = retry(*in_models({status: [died("a", status, run_dir=f"/sweep/{status}")] for status in vocab.STATUS}))
    assert {row["status"] for row in rows} == set(worth)  # no other status would be changed by another try
    assert {row["run_id"] for row in rows} == {f"{status}: a" for status in worth}
    assert len(rows) == len(worth)
    for row in rows:
        assert (row["attempts"], row["infra_failures"], row["gpu_hours_lost"]) == (1, 1, 4.0)
        assert (row["run_dir"], row["layout"]) == (f"/sweep/{row['status']}", "DP8 TP1 PP1 · GAS16 MBS2 · Z0")
        assert row["reason"]


def test_memory_that_other_processes_held_is_worth_another_try() -> None:
    held = {
        "run_id": "held",
        "source_path": "/logs/a.out",
        "line_no": 9,
        "kind": "oom_by_others",
        "text": "process 622",
    }
    (row,) = retry(died("held", "oom"), died("large", "oom", mbs=4, gas=8), events=[held])
    assert (row["run_id"], row["reason"]) == ("held", "other processes held the GPU's memory")


def test_out_of_memory_is_one_reason_but_where_other_processes_held_it() -> None:
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {}iB. GPU 0 has a total capacity of 79.18 GiB"
    wordings = ask(
        "SELECT failure_wording(status_evidence, run_id = 'c') AS wording FROM runs ORDER BY run_id",
        *(
            died(name, "oom", status_evidence=line.format(size))
            for name, size in (("a", "2 G"), ("b", "64 M"), ("c", "1 G"))
        ),
    )
    common = "torch.OutOfMemoryError: CUDA out of memory"
    assert [row["wording"] for row in wordings] == [common, common, "other processes held the GPU's memory"]


def test_a_configuration_with_an_answer_needs_no_retry() -> None:
    answers = ("completed", "running", "oom", "crash")
    same = {later: [died("a", "node_fail"), died("b", later, at=60)] for later in answers}
    other = {f"other {later}": [died("a", "node_fail"), died("b", later, at=60, mbs=4, gas=8)] for later in answers}
    found = retry(*in_models(same | other))
    assert [row["run_id"] for row in found] == sorted(f"{case}: a" for case in other)


def test_attempts_of_one_configuration_are_one_row_with_the_last_evidence() -> None:
    events = [
        {"run_id": "b", "source_path": "/logs/b.out", "line_no": 91, "kind": "hang", "text": "Watchdog caught"},
    ]
    runs = [
        died("a", "node_fail"),
        died("b", "hang", at=60, status_evidence="Watchdog caught"),
        died("c", "cancelled", at=90),
    ]
    (row,) = retry(*runs, events=events)
    assert (row["run_id"], row["attempts"], row["infra_failures"], row["evidence_line_no"]) == ("b", 3, 2, 91)
    assert row["gpu_hours_lost"] == 8.0
    assert "2 of 3 attempts" in row["reason"]


def test_a_time_limit_counts_only_when_the_run_was_stretched() -> None:
    peers = [ran(f"p{i}", 10) for i in range(3)]
    cases = {name: [*peers, died("late", "timeout", t, dp=4, tp=2, gas=32)] for name, t in (("far", 120), ("near", 20))}
    (row,) = retry(*in_models(cases))
    assert (row["run_id"], row["reason"]) == ("far: late", "the time limit came after 12 times the usual duration")


def test_published_failures_are_nobodys_to_repeat() -> None:
    assert retry(died("a", "node_fail", origin="published")) == []


def test_rules_are_there_for_users_own_queries() -> None:
    connection: duckdb.DuckDBPyConnection = open_store(completed_frame())
    (row,) = rows_of(
        connection, "SELECT wilson_low(5, 10) AS low, wilson_high(5, 10) AS high, noise_prior_freedom() AS n"
    )
    assert (row["low"], row["high"], row["n"]) == (
        pytest.approx(0.2366, abs=1e-4),
        pytest.approx(0.7634, abs=1e-4),
        4,
    )
