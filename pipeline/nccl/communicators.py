"""The fold for communicators: which ranks form one, how it came up, which links and calls are its own.

A communicator is known by its commId (2.16+); a split of 2.24+ by its parent, split count and colour; else by nothing:
its ranks are then gathered in the order of their lines (the n-th line of each rank is of the n-th communicator of that
size), which can mix communicators of one size, and says so. Addresses are unique within a process until it destroys
the communicator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from pipeline.nccl.facts import PARTS, SCHEMAS, Facts

Row = dict[str, Any]
_Pointer = tuple[object, object, object]


@dataclass
class Rank:
    """One rank of one communicator, from its first line on."""

    row: Row
    comm: Communicator
    state: str
    ended_at: int | None = None
    timing: Row | None = None


@dataclass
class Communicator:
    """One communicator as its ranks' lines tell of it."""

    line_no: int
    nranks: int
    key: tuple[object, ...]
    comm_hash: object
    api: object
    parent: Communicator | None
    color: object
    ranks: dict[int, Rank] = field(default_factory=dict)
    nnodes: int | None = None
    notes: dict[str, Row] = field(default_factory=dict)
    index: int = 0

    @property
    def is_identified(self) -> bool:
        """Whether an identity, not the order of lines, tells its ranks."""
        return self.key[0] != "order"

    @property
    def state(self) -> str:
        """The least that any rank reached; aborted if any was."""
        states = {rank.state for rank in self.ranks.values()}
        return next((state for state in ("aborted", "started", "complete", "destroyed") if state in states), "started")


class Communicators:
    """All communicators of one file, from the lines with which they begin and end, told in the order of the file."""

    def __init__(self) -> None:
        self.all: list[Communicator] = []
        self.by_pointer: dict[_Pointer, list[Rank]] = defaultdict(list)
        self.events: list[tuple[Row, Rank]] = []  # lines with which a rank began or was ready
        self._groups: dict[tuple[object, ...], list[Communicator]] = defaultdict(list)
        self._times_seen: dict[tuple[object, ...], int] = defaultdict(int)
        self._alive: dict[_Pointer, Rank] = {}

    def init(self, row: Row) -> None:
        """A line of `init` facts."""
        pointer = (row["host"], row["pid"], row["comm"])
        state, known = row["state"], self._alive.get(pointer)
        if state in ("destroyed", "aborted"):
            if known:
                known.state, known.ended_at = state, row["line_no"]
                del self._alive[pointer]
            return
        is_same = known is not None and (known.row["rank"], known.row["nranks"]) == (row["rank"], row["nranks"])
        if known is not None and is_same and known.state == "started" and state == "complete":
            known.state = state
            known.row |= {name: value for name, value in row.items() if value is not None and name != "line_no"}
            rank = known
        else:
            rank = self._new_rank(row, state)
            self._alive[pointer] = rank
            self.by_pointer[pointer].append(rank)
        self.events.append((row, rank))

    def finish(self) -> None:
        """The end of the file: number the communicators by their first lines."""
        self.all.sort(key=lambda comm: comm.line_no)
        for index, comm in enumerate(self.all, 1):
            comm.index = index

    def same_size(self, comm: Communicator) -> list[Communicator]:
        """The communicators from which only the order of lines tells this one."""
        return self._groups[comm.key]

    def _new_rank(self, row: Row, state: str) -> Rank:
        number, nranks = row["rank"], row["nranks"]
        parent = self._alive.get((row["host"], row["pid"], row["parent"])) if row["parent"] else None
        key: tuple[object, ...]
        if row["comm_hash"]:
            key = ("hash", row["comm_hash"], nranks, row["color"])
        elif parent:
            key = ("split", id(parent.comm), row["split_count"], row["color"], nranks)
        else:
            key = ("order", nranks, row["split_count"], row["color"])
        place = self._times_seen[(*key, number)]
        self._times_seen[(*key, number)] += 1
        group = self._groups[key]
        while len(group) <= place:
            group.append(
                Communicator(
                    line_no=row["line_no"], nranks=nranks, key=key, comm_hash=row["comm_hash"],
                    api=row["api"], parent=parent.comm if parent else None, color=row["color"],
                )
            )  # fmt: skip
            self.all.append(group[-1])
        comm = group[place]
        rank = Rank(dict(row), comm, state)
        comm.ranks[number] = rank
        comm.line_no = min(comm.line_no, row["line_no"])
        return rank


def gather(facts: Facts) -> dict[int, Communicators]:
    """The communicators of each file, as their lines of initialisation tell; `says.tell` adds what others tell."""
    found: dict[int, Communicators] = {}
    names = list(SCHEMAS["init"])
    for source, *row in facts["init"].sort("source", "line_no", maintain_order=True).iter_rows():
        if source not in found:
            found[source] = Communicators()
        found[source].init(dict(zip(names, (source, *row), strict=True)))
    for of_file in found.values():
        of_file.finish()
    return found


def events(comms: Mapping[int, Communicators]) -> pl.DataFrame:
    """Lines with which ranks begin or are ready: whose, and whether the rank never got further (`is_open`)."""
    rows = [
        (
            source, row["host"], row["pid"], row["tid"], row["line_no"], row["state"] == "complete",
            rank.state == "started", rank.comm.index, rank.row["rank"], rank.row["nranks"],
        )
        for source, of_file in comms.items()
        for row, rank in of_file.events
    ]  # fmt: skip
    schema = {
        "source": pl.Int64, "host": pl.String, "pid": pl.Int64, "tid": pl.Int64, "line_no": pl.Int64,
        "is_ready": pl.Boolean, "is_open": pl.Boolean, "comm_index": pl.Int64, "rank": pl.Int64, "nranks": pl.Int64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row").sort("line_no")


def lives(comms: Mapping[int, Communicators]) -> pl.DataFrame:
    """From which line to which an address (`comm`) of a process is that of a rank of a communicator."""
    rows = [
        (source, *pointer, rank.row["line_no"], rank.ended_at, rank.comm.index, rank.row["rank"], rank.comm.nranks)
        for source, of_file in comms.items()
        for pointer, ranks in of_file.by_pointer.items()
        for rank in ranks
    ]
    schema = {
        "source": pl.Int64, "host": pl.String, "pid": pl.Int64, "comm": pl.String, "line_no": pl.Int64,
        "ended_at": pl.Int64, "comm_index": pl.Int64, "rank": pl.Int64, "nranks": pl.Int64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row").sort("line_no")


def communicator_rows(found: Mapping[int, Communicators]) -> list[dict[str, object]]:
    """Rows of `nccl_communicators`, but for what links and COLL lines add."""
    return [row for source, of_file in found.items() for row in _communicators_of(source, of_file)]


def _communicators_of(source: int, found: Communicators) -> list[dict[str, object]]:
    rows = []
    for comm in found.all:
        times = {
            number: rank.timing["total"]
            for number, rank in comm.ranks.items()
            if rank.timing and rank.timing["total"] is not None
        }
        slowest = max(times, key=lambda number: times[number]) if times else None
        timing = comm.ranks[slowest].timing if slowest is not None else None
        channels, ring, network = (comm.notes.get(name, {}) for name in ("channels", "ring", "network"))
        hosts = {rank.row["host"] for rank in comm.ranks.values()}
        rows.append(
            {
                "source": source, "comm_index": comm.index, "comm_hash": comm.comm_hash, "comm_api": comm.api,
                "parent_comm_index": comm.parent.index if comm.parent else None, "split_color": comm.color,
                "nranks": comm.nranks, "ranks_seen": len(comm.ranks),
                "is_membership_exact": comm.is_identified or len(found.same_size(comm)) == 1,
                "num_nodes": comm.nnodes or (len(hosts) if len(comm.ranks) == comm.nranks else None),
                "ring_channels": ring.get("channels"), "ring_order": ring.get("order"),
                "coll_channels": channels.get("coll"), "collnet_channels": channels.get("collnet"),
                "nvls_channels": channels.get("nvls"), "p2p_channels": channels.get("p2p"),
                "p2p_channels_per_peer": channels.get("per_peer"), "network": network.get("network"),
                "init_state": comm.state,
                "init_time_s": times[slowest] if slowest is not None else None, "init_slowest_rank": slowest,
                "init_bootstrap_s": timing["bootstrap"] if timing else None, "line_no": comm.line_no,
            }
        )  # fmt: skip
    return rows


def rank_rows(found: Mapping[int, Communicators]) -> list[dict[str, object]]:
    """Rows of `nccl_ranks`, but for what COLL lines add."""
    return [
        {
            "source": source, "comm_index": comm.index, "rank": number, "nranks": comm.nranks, "host": rank.row["host"],
            "pid": rank.row["pid"], "cuda_dev": rank.row["cuda_dev"], "nvml_dev": rank.row["nvml_dev"],
            "bus_id": rank.row["bus_id"], "comm_pointer": rank.row["comm"], "init_state": rank.state,
            "init_time_s": rank.timing and rank.timing["total"],
            **{f"init_{part}_s": rank.timing and rank.timing[part] for part in PARTS},
            "line_no": rank.row["line_no"],
        }
        for source, of_file in found.items()
        for comm in of_file.all
        for number, rank in sorted(comm.ranks.items())
    ]  # fmt: skip
