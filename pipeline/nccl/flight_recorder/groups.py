"""Dumps of a job's ranks by process group: the collectives that each rank has joined, by sequence number.

Ranks are aligned by these numbers and not by the position of a record in the dump, as ring buffers may have wrapped at
different positions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

Record = dict[str, Any]
"""A row of `flight_records` with `source`."""
UNENDED = ("scheduled", "started")
_ENDS = re.compile(r"(?:send [0-9]{1,7}->|recv [0-9]{1,7}<-)([0-9]{1,7})$")


@dataclass(frozen=True)
class Group:
    """One process group: its collectives by rank and sequence number."""

    name: str | None
    desc: str | None
    members: set[int]
    present: set[int]  # members whose dumps have records of the group
    absent: set[int]  # members without a dump
    unread: set[int]  # members whose dump cannot be read: cut, as a rule
    calls: Mapping[int, Mapping[int, Record]]
    enqueued: Mapping[int, int]  # by rank: last sequence number

    @property
    def title(self) -> str:
        """Name and description, as the watchdog prints them."""
        return f"{self.name}({self.desc})" if self.desc else str(self.name)


@dataclass(frozen=True)
class Pending:
    """A call that cannot be compared with the other ranks' and has not ended; and the rank at its other end."""

    call: str
    peer: int | None


def groups_of(
    records: pl.DataFrame, *, empty: Collection[int] = (), unread: Collection[int] = ()
) -> tuple[list[Group], dict[int, Pending]]:
    """The process groups of which a rank has recorded a collective, and what else each rank waits in.

    `records` have a rank and are in its order; `empty` are ranks whose dumps hold none.
    """
    every = {*records["rank"], *empty}
    unknown = set(unread) - every
    begins = records.group_by("rank").agg(pl.col("record_id").min())
    wrapped = set(begins.filter(pl.col("record_id") > 0)["rank"].to_list())
    rows = list(records.iter_rows(named=True))
    by_group = _by_group(rows)
    compared = {id(row) for calls in by_group.values() for row in _collectives(calls)}
    groups = []
    for (_, ranks), calls in by_group.items():
        by_rank: dict[int, dict[int, Record]] = defaultdict(dict)
        enqueued: dict[int, int] = {}
        for row in _collectives(calls):
            by_rank[row["rank"]][row["seq"]] = row
            enqueued[row["rank"]] = max(enqueued.get(row["rank"], -1), row["seq"])
        desc = next((row["pg_desc"] for row in calls if row["pg_desc"]), None)
        members = {int(rank) for rank in ranks.split(",")} if ranks else {row["rank"] for row in calls}
        if not ranks and (desc == "default_pg" or _is_early(calls[0])):
            members = set(range(max(every | unknown) + 1))  # all ranks, up to that of the last dump
        if by_rank:
            # A buffer that wrapped may have lost a quiet group's records: nothing is known of such a rank.
            present = {rank for rank in members & every if rank in by_rank or rank not in wrapped}
            lost, cut = members - every - unknown, members & unknown
            name = calls[0]["pg_name"]
            groups.append(Group(name, desc, members, present, lost, cut, dict(by_rank), enqueued))
    return groups, _pending(row for row in rows if id(row) not in compared)


def _pending(rows: Iterable[Record]) -> dict[int, Pending]:
    """Each rank's last record that has not ended; Gloo's records do not have that state."""
    found = {}
    for row in rows:
        call = str(row["profiling_name"])
        if row["op_state"] in UNENDED and not call.startswith("gloo:"):
            desc = f"({row['pg_desc']})" if row["pg_desc"] else ""
            found[row["rank"]] = Pending(f"{call.split(':', 1)[-1]} of {row['pg_name']}{desc}", _peer(call, row))
    return found


def _peer(call: str, row: Record) -> int | None:
    """The other end of a send or receive, which has ranks by their position in the group."""
    ends = _ENDS.search(call)
    if ends is None:
        return None
    position, ranks = int(ends[1]), (row["pg_ranks"] or "").split(",")
    if row["pg_ranks"]:
        return int(ranks[position]) if position < len(ranks) else None
    return position if row["pg_desc"] == "default_pg" else None


def _by_group(rows: Sequence[Record]) -> dict[tuple[str | None, str | None], list[Record]]:
    """Rows by the group's name and ranks, since groups that were split off may share a name.

    A dump without a group's ranks belongs to the group of that name in other dumps, if there is only one.
    """
    found: dict[tuple[str | None, str | None], list[Record]] = defaultdict(list)
    for row in rows:
        if not _is_early(row):
            found[(row["pg_name"], row["pg_ranks"])].append(row)
    for name in [name for name, ranks in found if ranks is None]:
        listed = [ranks for other, ranks in found if other == name and ranks is not None]
        unlisted = {str(row["rank"]) for row in found[(name, None)]}
        fitting = [ranks for ranks in listed if unlisted <= set(ranks.split(","))]
        if len(fitting) == 1:
            found[(name, fitting[0])] += found.pop((name, None))
    return found | _early_groups([row for row in rows if _is_early(row)])


def _is_early(row: Record) -> bool:
    return str(row["dump_version"]).startswith("1.")


def _early_groups(rows: Sequence[Record]) -> dict[tuple[str | None, str | None], list[Record]]:
    """The same for formats 1.x (torch 2.2 and 2.3), by the group's position among those of the same ranks.

    Each process numbers its groups for itself, from the default group on, and sends count as collectives do: groups
    with sends, and those without ranks, cannot be compared.
    """
    numbers: dict[tuple[int, str | None], list[int]] = defaultdict(list)
    numbered = {(int(row["pg_name"] or 0), row["rank"], row["pg_ranks"]) for row in rows}
    for number, rank, ranks in sorted(numbered, key=lambda group: group[0]):
        numbers[rank, ranks].append(number)
    found: dict[tuple[str | None, str | None], list[Record]] = defaultdict(list)
    for row in rows:
        position = numbers[row["rank"], row["pg_ranks"]].index(int(row["pg_name"] or 0))
        if row["pg_ranks"] or row["pg_name"] == "0":
            found[(str(position), row["pg_ranks"])].append(row)
    unclear = {key for key, calls in found.items() if any(row["is_p2p"] or row["op"] == "coalesced" for row in calls)}
    return {key: calls for key, calls in found.items() if key not in unclear}


def _collectives(calls: Iterable[Record]) -> Iterable[Record]:
    """The calls that are collectives. What closes a batch of sends and receives has the number of the collective before
    it and is marked as point-to-point by newer versions only."""
    batches = {(row["rank"], row["p2p_seq"], row["seq"]) for row in calls if row["is_p2p"]}
    for row in calls:
        is_batch = row["op"] == "coalesced" and (row["rank"], row["p2p_seq"], row["seq"]) in batches
        if not (row["is_p2p"] or is_batch or row["seq"] is None):
            yield row
