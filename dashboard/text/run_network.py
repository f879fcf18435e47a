"""Sentences on the network of one run, each computed from its rows."""

from __future__ import annotations

import polars as pl

from sweepscope.dashboard.format.numbers import capital, count, number, seconds
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text.hang import hang_title
from sweepscope.dashboard.text.network import file_line
from sweepscope.dashboard.view_models.network import size_text
from sweepscope.schemas.vocab.nccl import RULE

_RULES_SHOWN = 4


def facts(files: pl.DataFrame, comms: pl.DataFrame, calls: pl.DataFrame) -> list[tuple[str, str, str]]:
    """Label, value and note: library, network, transports, channels, time to come up, bytes moved.

    Rows of `queries.run_network`: its `files`, communicators (`comms`) and collectives (`calls`).
    """
    first = files.row(0, named=True)
    rows = [("Library", _library(files), "")]
    if first["networks"]:
        rows.append(("Network chosen", first["networks"], ""))
    used = sorted({name for text in files["transports"].drop_nulls() for name in text.split(", ")})
    if used:
        rows.append(("Transports in use", ", ".join(used), ""))
    if comms.height:
        sizes = ", ".join(
            f"{number(row['communicators'])} of {count(row['nranks'], 'rank')}"
            for row in comms.head(4).iter_rows(named=True)
        )
        more = f" and {count(comms.height - 4, 'size')} more" if comms.height > 4 else ""
        rows.append(("Communicators", f"{sizes}{more}", ""))
        channels = comms["ring_channels"].max()
        if isinstance(channels, int):
            rows.append(("Ring channels", number(channels), _nvls(comms["nvls_channels"].max())))
        slowest = comms.drop_nulls("slowest_init_s").sort("slowest_init_s", descending=True)
        if slowest.height:
            row = slowest.row(0, named=True)
            waiting = "" if row["init_bootstrap_s"] is None else f", {seconds(row['init_bootstrap_s'])} in bootstrap"
            note = f"{count(row['nranks'], 'rank')}, slowest rank {row['init_slowest_rank']}{waiting}"
            rows.append(("Slowest to come up", seconds(row["slowest_init_s"]), note))
    if calls.height:
        top = calls.row(0, named=True)
        ranks = f" on {count(top['nranks'], 'rank')}" if top["nranks"] else ""
        total = int(calls["total_bytes"].sum() or 0)
        rows.append(("Moved by collectives", size_text(total), f"most by {top['op']}{ranks}"))
    return rows


def _library(files: pl.DataFrame) -> str:
    versions = files.select("nccl_flavour", "nccl_version").iter_rows()
    return ", ".join(sorted({" ".join(filter(None, version)) for version in versions}))


def _nvls(channels: object) -> str:
    if not isinstance(channels, int):
        return ""
    return f"{number(channels)} for NVLink SHARP" if channels else "NVLink SHARP not in use"


def qualifier(files: pl.DataFrame) -> str:
    """Number of files it is known from."""
    return f"NCCL output of {count(files.height, 'file')}"


def finding_lines(findings: pl.DataFrame) -> list[tuple[str, str]]:
    """Rules with their evidence and its line; the first few."""
    rows = findings.head(_RULES_SHOWN).iter_rows(named=True)
    return [(f"{capital(RULE[row['nccl_rule']])}: {row['evidence']}", file_line(row)) for row in rows]


def more_findings(findings: pl.DataFrame) -> str:
    """How many are left out."""
    left = findings.height - _RULES_SHOWN
    return f"{count(left, 'more finding')} on the page Network." if left > 0 else ""


def hang_line(hang: Row) -> tuple[str, str]:
    """One hang: what waited, and for whom."""
    who = f"suspect: rank {hang['suspect']}" if hang["suspect"] else "suspect not determinable"
    return f"{hang_title(hang)}: {who}", file_line(hang)
