"""Sentences on the network of one run, each computed from its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from sweepscope.dashboard.format.numbers import count, number, seconds
from sweepscope.dashboard.text.network import hang_title, place
from sweepscope.dashboard.view_models.network import size_text
from sweepscope.schemas.vocab.nccl import RULE

Row = Mapping[str, Any]
_RULES_SHOWN = 4


def facts(files: pl.DataFrame, comms: pl.DataFrame, calls: pl.DataFrame) -> list[tuple[str, str, str]]:
    """Label, value and note: library, network, transports, channels, time to come up, bytes moved."""
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
        if channels is not None:
            nvls = comms["nvls_channels"].max()
            rows.append(("Ring channels", number(_whole(channels)), _nvls(nvls)))
        slowest = comms.drop_nulls("slowest_init_s").sort("slowest_init_s", descending=True)
        if slowest.height:
            row = slowest.row(0, named=True)
            waiting = "" if row["init_bootstrap_s"] is None else f", {seconds(row['init_bootstrap_s'])} in bootstrap"
            rows.append(
                (
                    "Slowest to come up",
                    seconds(row["slowest_init_s"]),
                    f"{count(row['nranks'], 'rank')}, slowest rank {row['init_slowest_rank']}{waiting}",
                )
            )
    if calls.height:
        total = calls["total_bytes"].sum()
        top = calls.row(0, named=True)
        rows.append(
            (
                "Moved by collectives",
                size_text(int(total or 0)),
                f"most by {top['op']} on {count(top['nranks'], 'rank')}" if top["nranks"] else f"most by {top['op']}",
            )
        )
    return rows


def _library(files: pl.DataFrame) -> str:
    named = sorted(
        {" ".join(filter(None, [row["nccl_flavour"], row["nccl_version"]])) for row in files.iter_rows(named=True)}
    )
    return ", ".join(named)


def _nvls(channels: object) -> str:
    if not isinstance(channels, int):
        return ""
    return f"{number(channels)} for NVLink SHARP" if channels else "NVLink SHARP not in use"


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def qualifier(files: pl.DataFrame) -> str:
    """Number of files it is known from."""
    return f"NCCL output of {count(files.height, 'file')}"


def finding_lines(findings: pl.DataFrame) -> list[tuple[str, str]]:
    """Rules with their evidence and its line; the first few."""
    rows = findings.head(_RULES_SHOWN).iter_rows(named=True)
    return [(f"{_sentence(RULE[row['nccl_rule']])}: {row['evidence']}", place(row)) for row in rows]


def more_findings(findings: pl.DataFrame) -> str:
    """How many are left out."""
    left = findings.height - _RULES_SHOWN
    return f"{count(left, 'more finding')} on the page Network." if left > 0 else ""


def hang_line(hang: Row) -> tuple[str, str]:
    """One hang: what waited, and for whom."""
    who = f"suspect: rank {hang['suspect']}" if hang["suspect"] else "suspect not determinable"
    return f"{hang_title(hang)}: {who}", place(hang)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
