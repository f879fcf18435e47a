"""Views on incidents: which files and nodes a run had, what happened in which order, and what speaks against a node."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import flag, integer, number, text, time
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.vocab.timeline import ENTRY_KIND, ENTRY_SOURCE, HOST_SOURCE

_HOST = text("host", "node, by the first part of its name")

RUN_FILES = Table(
    name="run_files",
    description="Which files with facts on the log, the network and hangs belong to which run.",
    grain="one row per run attempt and file, within the lines of the attempt",
    primary_key=("run_id", "path"),
    layer="view",
    is_stored=True,
    is_run_by_run=True,
    redefines=("path",),
    columns=columns(
        "run_id",
        text("path", "file: the run's log, or one beside it that can be of no other run"),
        integer("from_line", "count", "first line of the file that is about the run", minimum=1),
        integer("to_line", "count", "last such line; NULL: to the end", minimum=0),
    ),
)

RUN_HOSTS = Table(
    name="run_hosts",
    description="Which nodes a run was on, as far as any source names them.",
    grain="one row per run attempt and node",
    primary_key=("run_id", "host"),
    layer="view",
    is_stored=True,
    is_run_by_run=True,
    redefines=("host",),
    columns=columns("run_id", _HOST, text("host_source", "best source that names the node", HOST_SOURCE)),
)

NODES = Table(
    name="nodes",
    description="Every node: how often runs failed there and elsewhere, and what speaks against the node itself.",
    grain="one row per origin and node that a run was on, or that a line or benchmark names",
    primary_key=("origin", "host"),
    layer="view",
    redefines=("host", "runs_tried"),
    columns=columns(
        "origin",
        _HOST,
        integer("runs_tried", "count", "run attempts on the node, or whose failure names it"),
        "runs_judged runs_failed failure_rate failure_rate_low failure_rate_high",
        number("failure_rate_elsewhere", "fraction", "the same over all other nodes of the origin", minimum=0),
        flag("is_failing_more", "failure_rate_low is above failure_rate_elsewhere"),
        integer(
            "runs_naming", "count", "failed runs of which a line names the node; out of memory and time limits left out"
        ),
        integer("runs_straggling", "count", "runs with a straggler on the node"),
        integer("slow_findings", "count", "findings of nccl-tests that are slow wherever the node takes part"),
        integer("runs_occupied", "count", "runs that met memory or GPUs there that other processes held"),
        time("first_run_at", "start of the first run on it (as printed, no time zone)"),
        time("last_run_at", "end of the last run on it (as printed, no time zone)"),
    ),
)

RUN_TIMELINE = Table(
    name="run_timeline",
    description="What happened to a run in order, from its log, NCCL's output, the flight recorder, memory and the "
    "scheduler.",
    grain="one row per run attempt and entry",
    primary_key=("run_id", "entry_no"),
    layer="view",
    redefines=("ts", "host", "text", "source_path"),
    columns=columns(
        "run_id",
        integer("entry_no", "count", "number of the entry in the order of time; without a time at the end", minimum=1),
        time("ts", "when, on the clock of the run's log; see is_time_printed"),
        flag("is_time_printed", "the entry has a time of its own; else ts is that of the nearest line with one"),
        text("entry_source", "which kind of file has it", ENTRY_SOURCE),
        text("entry_kind", "what happened", ENTRY_KIND),
        "rank",
        _HOST,
        text("text", "the line, or what the file shows in words"),
        text("source_path", "file that has it"),
        "line_no",
    ),
)

VIEWS = (NODES, RUN_TIMELINE)
"""After the views on NCCL's output and on memory, which they use."""
