"""Columns of the views on reliability and cost: how runs end, how often, and what that costs."""

from __future__ import annotations

from sweepscope.schemas import vocab
from sweepscope.schemas.core.column import Column, bool_column, float_column, int_column, text_column

OUTCOME = (
    text_column("outcome", "class of the run's ending", vocab.OUTCOME),
    bool_column("is_failure", "the run ended without completing; NULL when nobody can judge (see `outcome`)"),
    bool_column("has_cell", "model, node count, sequence length and batch are known"),
    bool_column("is_ranked", "completed, with a cell and a throughput, and not in quarantine"),
    text_column("configuration_id", "hash of all that a user can choose: equal for repeats of one configuration"),
    text_column("day", "date of the start as logged, YYYY-MM-DD"),
    float_column("duration_s", "s", "seconds from the first to the last sign of life", positive=True),
    float_column(
        "gpu_hours_idle",
        "GPU·h",
        "of gpu_hours, those that the scheduler held beyond what the log shows: start-up, waiting, hanging",
        minimum=0,
    ),
)

RATES = (
    text_column("dimension", "what runs are grouped by", vocab.DIMENSION),
    int_column("runs_judged", "count", "run attempts that completed or failed"),
    int_column("runs_failed", "count", "run attempts that ended without completing"),
    int_column("runs_oom", "count", "failures: the GPU ran out of memory"),
    int_column("runs_hang", "count", "failures: a collective hung"),
    int_column("runs_infra", "count", "failures: node, network or preemption"),
    int_column("runs_timeout", "count", "failures: the scheduler's time limit"),
    int_column("runs_crash", "count", "failures: an exception, or the host ran out of memory"),
    int_column("runs_unexplained", "count", "failures without a reason in the log or the source"),
    float_column("failure_rate", "fraction", "runs_failed / runs_judged; NULL when nothing could be judged", minimum=0),
    float_column("failure_rate_low", "fraction", "lower end of its 95 % interval (Wilson 1927)", minimum=0),
    float_column("failure_rate_high", "fraction", "upper end of its 95 % interval (Wilson 1927)", minimum=0),
    float_column("gpu_hours_lost", "GPU·h", "accelerator-hours of the failures; NULL: known of none", minimum=0),
    int_column("failures_without_gpu_hours", "count", "failures whose accelerator-hours are unknown"),
)


def _spent(word: str) -> Column:
    meaning = vocab.OUTCOME[word]
    return float_column(f"gpu_hours_{word}", "GPU·h", f"accelerator-hours of runs that ended so: {meaning}", minimum=0)


COST = (
    *(_spent(word) for word in vocab.OUTCOME if word not in {"running", "undecided"}),
    float_column(
        "gpu_hours_undecided", "GPU·h", "accelerator-hours of runs that go on, or cannot be judged", minimum=0
    ),
    float_column(
        "gpu_hours_queued",
        "GPU·h",
        "wait in the scheduler's queue times accelerators asked for: time that passed, nothing that was spent",
        minimum=0,
    ),
    int_column("runs_without_gpu_hours", "count", "run attempts whose accelerator-hours are unknown: in no sum here"),
    int_column("cells_answered", "count", "cells with a ranked run of this sweep"),
    int_column("cells_in_order", "count", "of those, cells of which every run's start is known"),
    float_column(
        "gpu_hours_until_winner",
        "GPU·h",
        "accelerator-hours of the runs that began before or with the winner's first run, over the cells in order",
        minimum=0,
    ),
    float_column("gpu_hours_of_cells_in_order", "GPU·h", "accelerator-hours of all runs of those cells", minimum=0),
)

STRETCHED = (
    float_column(
        "usual_duration_s",
        "s",
        "median duration of the sweep's completed runs of the same cell and steps",
        positive=True,
    ),
    float_column("stretch", "1", "duration_s / usual_duration_s", positive=True),
    int_column("runs_alike", "count", "completed runs behind the usual duration"),
    float_column(
        "in_steps_s", "s", "steps times median step time: what the steps themselves account for", positive=True
    ),
    text_column("stretch_cause", "where the time went", vocab.STRETCH_CAUSE),
    float_column("excess_gpu_hours", "GPU·h", "accelerator-hours beyond the usual duration"),
)

RETRY = (
    int_column("attempts", "count", "run attempts of this configuration so far", minimum=1),
    int_column("infra_failures", "count", "of those, ended by node, network, preemption or hang", minimum=1),
    int_column("evidence_line_no", "count", "line of the log that says so", minimum=1),
)

COLUMNS = (*OUTCOME, *RATES, *COST, *STRETCHED, *RETRY)
