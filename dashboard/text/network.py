"""Sentences of the page on the network, each computed from the rows on screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import polars as pl

from sweepscope.dashboard.format.numbers import bandwidth, capital, count, number, plain, seconds, shortened
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.network import (
    Finding,
    line_name,
    size_text,
    version_numbers,
    version_range,
)
from sweepscope.schemas.vocab.nccl import RULE

NOTHING = (
    "**No NCCL output is in this store yet.** Set **NCCL_DEBUG=INFO** in the job, then run **sweepscope ingest PATH** "
    "on its logs."
)
HOW_TO_GET = (
    "**Versions, transports, channels, init times:** NCCL_DEBUG=INFO. Nothing else is needed; one file per process by "
    "NCCL_DEBUG_FILE=nccl.%h.%p.log keeps the lines whole.",
    "**Traffic and algorithms:** add NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING,COLL. COLL prints a line per "
    "collective and rank: use it for a few steps.",
    "**Bandwidth:** the output of nccl-tests (all_reduce_perf -b 8 -e 8G -f 2), unchanged.",
    "**Hangs:** PyTorch's watchdog prints them by itself. TORCH_FR_BUFFER_SIZE=2000 (TORCH_NCCL_TRACE_BUFFER_SIZE in "
    "older releases) with TORCH_NCCL_DUMP_ON_TIMEOUT=1 writes one dump per rank: ingest them as well.",
)
HOW_TO_READ = (
    "**How to read it.** Each finding is a rule over lines of NCCL's output; it names the first line that shows it. "
    "Like runs are those of one sweep with equal ranks and nodes; a median needs three of them. Bus bandwidth is "
    "algorithm bandwidth times a factor of the operation, so that it compares across numbers of ranks "
    "(nccl-tests, doc/PERFORMANCE.md); points are medians over files, of the better of in place and out of place.",
    "**What it hides.** A run without NCCL_DEBUG=INFO is in no figure here. Lines of a log that was cut are missing, "
    "so counts are lower bounds. Init times exist from NCCL 2.22 on, and include waiting for late ranks. Sizes do not "
    "identify the hardware or network of a run: benchmarks of different clusters in one sweep are not alike.",
)
NO_FINDING = "No rule found anything in these files."
NO_BENCH = "No nccl-tests table with several ranks is among these files. Ingest the output of all_reduce_perf."
NO_INIT = "No file times its initialisation: NCCL prints that from version 2.22 on, with NCCL_DEBUG=INFO."
NO_HANG = "No collective timed out in these files."
_MAX_NAME = 34
_ANSWER_RULES = 3
RULE_SHORT = {
    "socket_despite_ib": "TCP sockets in use although RDMA is there",
    "socket_network": "nodes talk over TCP sockets",
    "net_within_node": "ranks of one node talk over the network",
    "gdrdma_off": "GPUDirect RDMA is off",
    "tp_across_nodes": "tensor parallelism crosses nodes",
    "slow_host": "a host is slow in all its benchmarks",
    "low_busbw": "bus bandwidth is below like benchmarks",
    "shm_within_node": "GPUs of one node talk through host memory",
    "idle_nics": "network devices stay idle",
    "ring_crossings": "rings cross between nodes needlessly",
    "cross_nic": "connections change the network device",
    "fewer_channels": "fewer channels than like runs",
    "mixed_versions_run": "one run mixes NCCL versions",
    "mixed_versions_sweep": "NCCL versions are mixed",
    "sharp_fallback": "SHARP fell back",
    "slow_init": "initialisation is slow",
}


def answer(totals: Row, found: Sequence[Finding], hangs: pl.DataFrame) -> str:
    """What the rules found, and what hung."""
    return " ".join(part for part in (_found(totals, found), _hung(hangs)) if part)


def _found(totals: Row, found: Sequence[Finding]) -> str:
    if not totals["files"]:
        return ""
    if not found:
        return f"**No rule found a problem in the network of {count(totals['files'], 'file')}**."
    # Mixed versions come last, without files: all that were compared show them.
    ordered = sorted(found, key=lambda finding: finding.rule == "mixed_versions_sweep")
    shown = [
        RULE_SHORT[finding.rule]
        + ("" if finding.rule == "mixed_versions_sweep" else f" ({count(finding.files, 'file')})")
        for finding in ordered[:_ANSWER_RULES]
    ]
    more = f", and {number(len(found) - len(shown))} more" if len(found) > len(shown) else ""
    return f"**{count(len(found), 'finding')}:** {'; '.join(shown)}{more}."


def _hung(hangs: pl.DataFrame) -> str:
    if hangs.is_empty():
        return ""
    named, files = hangs["suspect"].count(), hangs["source_path"].n_unique()
    who = "no suspect can be determined"
    if named:
        who = f"a suspect is named for {'it' if hangs.height == 1 else number(named)}"
    return f"**{count(hangs.height, 'collective')} hung** in {count(files, 'file')}; {who}."


def meta(totals: Row, sweep: str | None, sweeps: int) -> str:
    """Files, versions and size."""
    parts = [count(totals["files"], "file") + " with NCCL output" if totals["files"] else "no NCCL output"]
    if totals["versions"]:
        parts.append(version_range(totals["versions"]))
    if sweep is None and sweeps > 1:
        parts.append(f"{number(sweeps)} sweeps together")
    return " · ".join(parts)


def figures(totals: Row, inits: pl.DataFrame, best: Row | None, hangs: pl.DataFrame) -> list[tuple[str, str, str]]:
    """Label, value and note of the plain figures.

    `inits` are rows of `queries.network.init_times`, `hangs` of `queries.network.hangs`, `best` is the row of
    `best_bandwidth`.
    """
    versions = sum(len(numbers) for numbers in version_numbers(totals["versions"] or []).values())
    largest = count(totals["nranks_max"], "rank") if totals["nranks_max"] else "not logged"
    known = f"known from {number(totals['files_with_communicators'])} of {count(totals['files'], 'file')}"
    suspects = f"suspect named for {number(hangs['suspect'].count())}" if hangs.height else ""
    return [
        ("Largest communicator", largest, known),
        ("NCCL versions", number(versions) if versions else "not logged", version_range(totals["versions"] or [])),
        ("Initialisation, median", *_init(inits)),
        ("Best bus bandwidth", *_best_bandwidth(best)),
        ("Hangs", number(hangs.height), suspects),
    ]


def _init(inits: pl.DataFrame) -> tuple[str, str]:
    """Value and note: the usual and the slowest initialisation."""
    usual, slowest = (inits["init_time_s"].median(), inits["init_time_s"].max()) if inits.height else (None, None)
    if not isinstance(usual, float) or not isinstance(slowest, float):
        return "not logged", "printed from NCCL 2.22 on"
    return seconds(usual), f"slowest {seconds(slowest)}, of {count(inits.height, 'communicator')}"


def _best_bandwidth(best: Row | None) -> tuple[str, str]:
    """Value and note: the highest bus bandwidth of a benchmark, and of what."""
    if best is None:
        return "not measured", ""
    where = line_name(best["num_nodes"], best["nranks"])
    note = f"{operation(best['op'])}, {where}, {size_text(best['message_bytes'])}"
    return bandwidth(best["busbw_bytes_per_s"]), note


def operation(op: str | None) -> str:
    """Name of a benchmarked operation."""
    return op or "operation not printed"


def rule_title(finding: Finding) -> tuple[str, str]:
    """The rule as a heading, and how many files show it."""
    return capital(RULE[finding.rule]), count(finding.files, "file")


def file_line(row: Row) -> str:
    """File and line of a row, the end of a long name.

    >>> file_line({"source_path": "/logs/a/train.log", "line_no": 70})
    'train.log:70'
    """
    short = shortened(PurePath(row["source_path"]).name, _MAX_NAME, keeps_end=True)
    return short if row["line_no"] is None else f"{short}:{row['line_no']}"


def advice(finding: Finding) -> str:
    """Remedy of a rule, and the line of its evidence."""
    return f"**What to do.** {finding.remedy} Source: {finding.fact_source}."


def bandwidth_hover(row: Row) -> str:
    """Hover of a point, as HTML for plotly."""
    files = count(row["files"], "file")
    more = f"<br>best {bandwidth(row['best_busbw_bytes_per_s'])} of {files}" if row["files"] > 1 else f"<br>{files}"
    return (
        f"<b>{plain(row['line'])}</b><br>{size_text(row['message_bytes'])}: {bandwidth(row['busbw_bytes_per_s'])}{more}"
    )


def bandwidth_alt(op: str | None, lines: Sequence[str]) -> str:
    """What the curves show, in one sentence."""
    return f"Bus bandwidth of {operation(op)} by message size, one line each for {'; '.join(lines)}."


def nodes_hover(row: Row) -> str:
    """Hover of a measured point over nodes, as HTML for plotly."""
    files = count(row["files"], "file")
    return (
        f"<b>{line_name(row['num_nodes'], row['nranks'])}</b><br>{size_text(row['message_bytes'])}: "
        f"{bandwidth(row['busbw_bytes_per_s'])}, measured<br>{files}"
    )


def published_hover(row: Row) -> str:
    """Hover of a published point, as HTML for plotly."""
    low, mid, high = (
        bandwidth(row[name], unit="")
        for name in ("bandwidth_p5_bytes_per_s", "bandwidth_bytes_per_s", "bandwidth_p95_bytes_per_s")
    )
    return (
        f"<b>{line_name(row['num_nodes'], row['nranks'])}</b><br>{size_text(row['message_bytes'])}: {mid} GB/s, "
        f"published<br>5 to 95 %: {low} to {high}<br>{plain(row['source_title'])}"
    )


PUBLISHED_NOTE = (
    "Filled: measured here, at the nearest size. Hollow: published, with the 5 to 95 % range; its source does not "
    "state whether it is bus or algorithm bandwidth."
)


def peaks_note(peaks: Sequence[tuple[str, float]]) -> str:
    """What the dotted lines are."""
    if not peaks:
        return ""
    return (
        "Dotted: what the links of the accelerator carry in one direction, and the usual network of its clusters. "
        "NVLink SHARP can go beyond the first, since the switch adds up."
    )


def init_hover(row: Row) -> str:
    """Hover of one communicator, as HTML for plotly."""
    parts = [f"<b>{count(row['nranks'], 'rank')}: {seconds(row['init_time_s'])}</b>", plain(file_line(row))]
    if row["init_bootstrap_s"] is not None:
        parts.append(f"{seconds(row['init_bootstrap_s'])} in bootstrap")
    if row["init_slowest_rank"] is not None:
        parts.append(f"slowest rank {row['init_slowest_rank']}")
    return "<br>".join(parts)
