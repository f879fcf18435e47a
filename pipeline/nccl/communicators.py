"""The fold for communicators: which ranks form one, how it came up, which links and calls are its own.

A communicator is known by its commId (2.16+); a split of 2.24+ by its parent, split count and colour; else by nothing:
its ranks are then gathered in the order of their lines (the n-th line of each rank is of the n-th communicator of that
size), which can mix communicators of one size, and says so. Addresses are unique within a process until it destroys
the communicator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.nccl.facts import PARTS, SCHEMAS, Facts

Row = dict[str, Any]
_Thread = tuple[object, object, object]
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
    """All communicators of one file. Lines are told in the order of the file; `finish` settles what is left over."""

    def __init__(self) -> None:
        self.all: list[Communicator] = []
        self.by_pointer: dict[_Pointer, list[Rank]] = defaultdict(list)
        self.events: list[tuple[Row, Rank]] = []  # lines with which a rank began or was ready
        self._groups: dict[tuple[object, ...], list[Communicator]] = defaultdict(list)
        self._times_seen: dict[tuple[object, ...], int] = defaultdict(int)
        self._alive: dict[_Pointer, Rank] = {}
        self._latest: dict[_Thread, Rank] = {}  # of a thread, and (tid None) of a process
        self._pending: dict[_Thread, dict[str, Row]] = defaultdict(dict)
        self._shapes: dict[_Pointer, int] = {}

    def init(self, row: Row) -> None:
        """A line of `init` facts."""
        pointer, thread = (row["host"], row["pid"], row["comm"]), _thread(row)
        state, known = row["state"], self._alive.get((row["host"], row["pid"], row["comm"]))
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
        if shape := self._shapes.pop(pointer, None):
            rank.comm.nnodes = shape
        self._latest[thread] = self._latest[(row["host"], row["pid"], None)] = rank
        self.events.append((row, rank))
        if state == "complete":
            for name, value in self._pending.pop(thread, {}).items():
                rank.comm.notes.setdefault(name, value)

    def timing(self, row: Row) -> None:
        """Follows the COMPLETE line of the same thread."""
        for thread in (_thread(row), (row["host"], row["pid"], None)):
            rank = self._latest.get(thread)
            if rank and (rank.row["rank"], rank.row["nranks"]) == (row["rank"], row["nranks"]):
                rank.timing = row
                return

    def shape(self, row: Row) -> None:
        """How many nodes the communicator of that address spans."""
        pointer = (row["host"], row["pid"], row["comm"])
        nnodes = row["nnodes"]
        if rank := self._alive.get(pointer):
            rank.comm.nnodes = nnodes
        else:
            self._shapes[pointer] = nnodes

    def note(self, name: str, row: Row) -> None:
        """A ring, channel or network line: of the communicator that the thread is about to finish."""
        known = self._pending[_thread(row)].setdefault(name, row)
        if name == "ring":  # until 2.4 each channel's ring tells of those before it only
            known["channels"] = max(known["channels"], row["channels"])

    def finish(self) -> None:
        """The end of the file: communicators that never finished."""
        for thread, notes in self._pending.items():
            rank = self._latest.get(thread)
            if rank and rank.state == "started":
                for name, value in notes.items():
                    rank.comm.notes.setdefault(name, value)
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


def _thread(row: Row) -> _Thread:
    return row["host"], row["pid"], row["tid"]


_EVENTS = ("init", "timing", "shape", "ring", "channels", "network")


def gather(facts: Facts) -> dict[int, Communicators]:
    """The communicators of each file: its lines told in order."""
    found: dict[int, Communicators] = {}
    for source, kind, row in _in_order(facts):
        if source not in found:
            found[source] = Communicators()
        of_file = found[source]
        if kind == "init":
            of_file.init(row)
        elif kind == "timing":
            of_file.timing(row)
        elif kind == "shape":
            of_file.shape(row)
        else:
            of_file.note(kind, row)
    for of_file in found.values():
        of_file.finish()
    return found


def _in_order(facts: Facts) -> Iterator[tuple[int, str, Row]]:
    rows = []
    for kind in _EVENTS:
        names = list(SCHEMAS[kind])
        rows += [(row[0], row[1], kind, names, row) for row in facts[kind].rows()]
    rows.sort(key=lambda item: item[:2])
    for source, _, kind, names, row in rows:
        yield source, kind, dict(zip(names, row, strict=True))


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
