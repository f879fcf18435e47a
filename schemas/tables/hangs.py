"""Collectives that timed out, and dumps of PyTorch's flight recorder."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import flag, integer, number, text
from sweepscope.schemas.core.rules import in_order
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.vocab.nccl import HANG_EVIDENCE, HANG_LINE

NCCL_HANGS = Table(
    name="nccl_hangs",
    description="Collectives that timed out, who reported them, who stayed silent, and who is the suspect.",
    grain="one row per distinct timed-out collective (operation, sequence number, process group, sizes, timeout)",
    primary_key=("source_path", "line_no", "op", "seq", "process_group", "numel_in", "numel_out", "timeout_ms"),
    nullable_key=("op", "seq", "process_group", "numel_in", "numel_out", "timeout_ms"),
    columns=columns(
        "source_path run_dir op seq process_group",
        integer("numel_in", "count", "elements of the input"),
        integer("numel_out", "count", "elements of the output"),
        "timeout_ms ran_for_ms",
        integer("num_ranks", "count", "ranks of the process group (of the job, where the group is unknown)", minimum=1),
        text("ranks_reporting", "ranks that reported this collective, separated by a comma"),
        text("ranks_silent", "ranks of the group that reported no timeout at all, separated by a comma"),
        text("ranks_elsewhere", "ranks that timed out on another collective, separated by a comma"),
        text("suspect", "ranks that are the likely cause, separated by a comma; NULL when it cannot be determined"),
        text("suspect_reason", "why, or why it is not determinable"),
        flag("is_first", "the collective of this file that began to wait first, as far as the lines tell"),
        text("evidence_source", "kind of evidence", HANG_EVIDENCE),
        "line_no",
    ),
)

NCCL_HANG_LINES = Table(
    name="nccl_hang_lines",
    description="Lines on a hang: timeouts, how far each rank had come, and what failed before.",
    grain="one row per line, kind, rank and collective; repetitions of a rank are left out",
    primary_key=("source_path", "line_no", "hang_line_kind", "rank", "op", "seq", "process_group"),
    nullable_key=("rank", "op", "seq", "process_group"),
    columns=columns(
        "source_path run_dir",
        text("hang_line_kind", "what the line reports", HANG_LINE),
        "rank op seq process_group ran_for_ms timeout_ms last_enqueued_seq last_completed_seq",
        text("printed_at", "when, as printed: month, day and time (glog prints no year), or date and time"),
        number("printed_after_s", "s", "seconds after the first such line of the run that prints a time", minimum=0),
        "text line_no",
    ),
)

FLIGHT_RECORDS = Table(
    name="flight_records",
    description="Records of PyTorch's flight recorder: which collectives each rank had enqueued, in what state.",
    grain="one row per dump and record",
    primary_key=("source_path", "line_no"),
    redefines=("line_no", "op"),
    columns=columns(
        "source_path run_dir",
        text("dump_version", "version of the dump's format"),
        "rank",
        integer("record_id", "id", "number of the record; the first one above 0 means that the ring buffer wrapped"),
        text("pg_name", "name of the process group"),
        text("pg_desc", "description of the process group"),
        text("pg_ranks", "global ranks of the process group, separated by a comma"),
        "seq",
        integer("p2p_seq", "id", "sequence number among the group's sends and receives"),
        integer("op_id", "id", "number of the operation, those inside a coalesced call counted"),
        text("op", "operation: the recorder's name without the backend (all_reduce, send)"),
        text("profiling_name", "operation as the recorder names it, nccl:all_reduce"),
        flag("is_p2p", "a send or receive"),
        text("op_state", "scheduled, started or completed; meaningless under Gloo"),
        flag("is_retired", "the watchdog has let go of it: completed, or timed out"),
        text("input_sizes", "shapes of the inputs"),
        text("input_dtypes", "types of the inputs, separated by a comma"),
        text("output_sizes", "shapes of the outputs"),
        text("output_dtypes", "types of the outputs, separated by a comma"),
        integer("created_ns", "ns", "when it was enqueued, since 1970"),
        integer("found_started_ns", "ns", "when the watchdog saw it started (an upper bound)"),
        integer("found_completed_ns", "ns", "when the watchdog saw it completed (an upper bound)"),
        number("duration_ms", "ms", "time on the GPU, with timing enabled", minimum=0),
        "timeout_ms last_enqueued_seq",
        integer("last_started_seq", "id", "last collective that the rank started in the group; -1 = none", minimum=-1),
        "last_completed_seq",
        text("stack", "Python frames, innermost first, file:line function, separated by ' < '"),
        integer("line_no", "count", "place of the record in the dump, from 1", minimum=1),
    ),
    rules=(in_order("found_started_ns", "found_completed_ns"),),
)
