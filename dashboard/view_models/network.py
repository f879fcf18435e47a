"""What the page on the network shows: findings by rule, bandwidth lines, and the state of each rank in a hang."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sweepscope.dashboard.format.numbers import count
from sweepscope.dashboard.format.symbols import Mark
from sweepscope.dashboard.queries.query import Row
from sweepscope.schemas.vocab.nccl import RULE

MAX_LINES = 6

RANK_STATE: dict[str, Mark] = {
    "suspect": Mark("▲", "suspect", "failed"),
    "silent": Mark("○", "no output", "axis"),
    "elsewhere": Mark("◆", "waited in another collective", "hang"),
    "waited": Mark("■", "waited in this one", "hatch"),
    "unknown": Mark("?", "not named", "axis"),
}
"""States of a rank in one hang; the first that applies."""


COUNTERS = ("last_enqueued_seq", "last_started_seq", "last_completed_seq")
"""Columns of the flight recorder that say how far a rank came."""
_STATE_COLUMNS = {"rank": pl.Int64, "state": pl.String, "detail": pl.String, **dict.fromkeys(COUNTERS, pl.Int64)}


@dataclass(frozen=True)
class Finding:
    """All that one rule found: its rows, most places first, and what to do."""

    rule: str
    rows: tuple[Row, ...]
    remedy: str
    fact_source: str

    @property
    def files(self) -> int:
        """Files that show it; a mixture of versions is shown by all that were compared."""
        if self.rule.startswith("mixed_versions"):
            return sum(row["places"] for row in self.rows)
        return len({row["source_path"] for row in self.rows})


def by_rule(rows: pl.DataFrame) -> list[Finding]:
    """Rows of `queries.network.findings` by rule, in the order of `RULE`, which puts the costly ones first."""
    grouped: dict[str, list[dict[str, Any]]] = {rule: [] for rule in RULE}
    for row in rows.iter_rows(named=True):
        grouped[row["nccl_rule"]].append(row)
    return [
        Finding(rule, tuple(found), found[0]["remedy"], found[0]["fact_source"])
        for rule, found in grouped.items()
        if found
    ]


def line_name(num_nodes: int | None, nranks: int, fabric: str | None = None) -> str:
    """Name of a bandwidth line, with what it ran on where that tells it from others.

    >>> line_name(2, 16), line_name(1, 8), line_name(None, 8, "A100, OFI")
    ('2 nodes · 16 ranks', '1 node · 8 ranks', '8 ranks · A100, OFI')
    """
    parts = [count(num_nodes, "node")] if num_nodes is not None else []
    return " · ".join([*parts, count(nranks, "rank"), *([fabric] if fabric else [])])


def bandwidth_lines(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[str], int]:
    """Rows of `queries.network.bandwidths` with their `line`, the lines to draw, and how many are left out.

    Of more than six the one that reached most stays, because the page's figures name it, and those with most sizes;
    they differ by nodes first, so few nodes come first.
    """
    # the fabric is named where several ran on as many ranks
    rows = rows.with_columns(fabrics=pl.col("fabric").n_unique().over("num_nodes", "nranks"))
    named = rows.with_columns(
        line=pl.struct("num_nodes", "nranks", "fabric", "fabrics").map_elements(
            lambda row: line_name(row["num_nodes"], row["nranks"], row["fabric"] if row["fabrics"] > 1 else None),
            pl.String,
        )
    )
    most = pl.col("best_busbw_bytes_per_s").max()
    sizes = named.group_by("line", maintain_order=True).agg(pl.len(), most.alias("most")).with_row_index("position")
    is_fastest = pl.col("most") == pl.col("most").max()
    ordered = sizes.sort(is_fastest, "len", "position", descending=[True, True, False])
    kept = ordered.head(MAX_LINES).sort("position")["line"].to_list()
    return named, kept, sizes.height - len(kept)


def peaks(links: pl.DataFrame) -> list[tuple[str, float]]:
    """Name and bytes/s of what can be carried, for rows of `queries.network.links_of`; two cards at most.

    The bus bandwidth of a ring is bounded by the slowest link that it runs over: within a node the accelerator's links,
    between nodes all network cards of a node together, of which each accelerator in use has its share.
    """
    found = []
    for row in links.head(2).iter_rows(named=True):
        found.append((f"link of {row['accelerator']}", row["link_bytes_per_s"]))
        if row["num_nodes"] > 1 and row["network_bytes_per_s"]:
            shared = row["network_bytes_per_s"] * row["ranks_per_node"]
            name = f"network of {row['ranks_per_node']} × {row['accelerator']}"
            found.append((name, min(shared, row["link_bytes_per_s"])))
    return found


def size_text(size_bytes: int) -> str:
    """A message size in binary units, as nccl-tests takes them.

    >>> size_text(512), size_text(2**20), size_text(33553920), size_text(3 * 2**29)
    ('512 B', '1 MiB', '32 MiB', '1.5 GiB')
    """
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.3g} {unit}"
    return f"{size_bytes} B"


def ranks_of(text: str | None) -> list[int]:
    """Ranks in a list of the store.

    >>> ranks_of("0,2, 3"), ranks_of(None)
    ([0, 2, 3], [])
    """
    return [int(found) for found in re.findall(r"\d+", text or "")]


def ranks_text(text: str) -> str:
    """Ranks in a list of the store for readers: those in a row as a range.

    >>> ranks_text("0,1,2,53"), ranks_text("4,5"), ranks_text("0")
    ('0–2, 53', '4, 5', '0')
    """
    rows: list[list[int]] = []
    for rank in sorted(set(ranks_of(text))):
        if rows and rank == rows[-1][-1] + 1:
            rows[-1].append(rank)
        else:
            rows.append([rank])
    return ", ".join(f"{row[0]}–{row[-1]}" if len(row) > 2 else ", ".join(map(str, row)) for row in rows)


def rank_states(hang: Row, recorded: pl.DataFrame) -> pl.DataFrame:
    """One row per rank of a hang: `rank`, `state` (a word of `RANK_STATE`), `detail`, and the recorder's counters.

    Ranks that no list names are of the group only where the others are numbered from 0 within it: a group of global
    ranks 8 to 15 has none below.
    """
    members_by_state = {
        "suspect": ranks_of(hang["suspect"]),
        "silent": ranks_of(hang["ranks_silent"]),
        "elsewhere": ranks_of(hang["ranks_elsewhere"]),
        "waited": ranks_of(hang["ranks_reporting"]),
    }
    counters = {row["rank"]: row for row in recorded.iter_rows(named=True)}
    ranks = set(counters).union(*members_by_state.values())
    if hang["num_ranks"] and all(rank < hang["num_ranks"] for rank in ranks):
        ranks |= set(range(hang["num_ranks"]))
    states = []
    for rank in sorted(ranks):
        words = [state for state, members in members_by_state.items() if rank in members] or ["unknown"]
        seen = counters.get(rank, {})
        states.append(
            {
                "rank": rank,
                "state": words[0],
                "detail": ", ".join(RANK_STATE[word].word for word in words),
                **{name: seen.get(name) for name in COUNTERS},
            }
        )
    return pl.DataFrame(states, schema=_STATE_COLUMNS, infer_schema_length=None)


def version_numbers(versions: Sequence[str]) -> dict[str, set[tuple[int, ...]]]:
    """Versions of each library as numbers; builds of one version count as one.

    >>> version_numbers(["NCCL 2.21.5", "NCCL 2.21.5+cuda12.4"])
    {'NCCL': {(2, 21, 5)}}
    """
    found: dict[str, set[tuple[int, ...]]] = {}
    for text in versions:
        flavour, _, number = text.rpartition(" ")
        if digits := re.match(r"\d+(?:\.\d+)*", number):
            found.setdefault(flavour, set()).add(tuple(int(part) for part in digits[0].split(".")))
    return found


def version_range(versions: Sequence[str]) -> str:
    """Lowest and highest version of each library, compared by their numbers.

    >>> version_range(["NCCL 2.7.8+cuda10.2", "NCCL 2.21.5", "NCCL 2.21.5+cuda12.4", "RCCL 2.22.3-HEAD:27"])
    'NCCL 2.7.8 to 2.21.5, RCCL 2.22.3'
    """
    spans = []
    for flavour, numbers in sorted(version_numbers(versions).items()):
        low, high = (".".join(map(str, pick(numbers))) for pick in (min, max))
        spans.append(f"{flavour} {low}" if low == high else f"{flavour} {low} to {high}")
    return ", ".join(spans)
