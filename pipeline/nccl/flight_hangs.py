"""Which collective hangs according to the dumps of a job's ranks, and who is the suspect.

Ranks are aligned per process group by the sequence number of their collectives, not by their place in the dump, so
that ring buffers that wrapped at different places do not matter. Three questions, in this order: who did not join the
first collective that some joined; whose operation, sizes or types differ from the majority's; and, where all joined
and nothing differs, who has not started what the others have. The first rank is not presumed innocent, several
suspects may stand side by side, and a missing dump is a finding, not an error.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

Record = dict[str, Any]

# Where ranks may differ by design (torch/distributed/flight_recorder/components/types.py has the same exceptions).
_UNEVEN_INPUT = ("alltoall", "all_to_all", "scatter")
_UNEVEN_OUTPUT = ("alltoall", "all_to_all", "gather")
_NEEDS_ALL = ("all_reduce", "allreduce", "all_gather", "allgather", "reduce_scatter", "barrier")
"""No rank ends these before every rank has entered them."""
_UNEVEN_TYPES = ("scatter", "gather", "broadcast")


@dataclass(frozen=True)
class Group:
    """One process group: its collectives by rank and sequence number."""

    name: str | None
    desc: str | None
    members: set[int]
    are_members_known: bool
    present: set[int]  # members whose dumps tell of the group
    absent: set[int]  # members without a dump
    calls: Mapping[int, Mapping[int, Record]]
    enqueued: Mapping[int, int]  # by rank: last sequence number

    @property
    def title(self) -> str:
        """Name and description, as the watchdog prints them."""
        return f"{self.name}({self.desc})" if self.desc else str(self.name)


def flight_hangs(records: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of `nccl_hangs` for the dumps of one job: at most one per process group, none where nothing hangs.

    `records` are rows of `flight_records` with `source`; dumps whose name tells no rank take no part.
    """
    known = records.drop_nulls("rank").sort("rank", "line_no")
    dumps = dict(known.select("rank", "source").unique().iter_rows())
    judged = ((_missing(group) or _mismatch(group) or _not_started(group), group) for group in _groups(known))
    found = [(verdict, group) for verdict, group in judged if verdict]
    first = min((_first_wait(verdict) for verdict, _ in found), default=0)
    return [_row(verdict, group, dumps, is_first=_first_wait(verdict) == first) for verdict, group in found]


@dataclass(frozen=True)
class _Verdict:
    """A collective that hangs: the records of the ranks that wait in it, the suspects and why."""

    waiting: Mapping[int, Record]
    silent: list[int]
    suspects: list[int]
    reason: str


def _groups(records: pl.DataFrame) -> list[Group]:
    every = set(records["rank"].to_list())
    begins = records.group_by("rank").agg(pl.col("record_id").min())
    wrapped = set(begins.filter(pl.col("record_id") > 0)["rank"].to_list())
    rows: dict[tuple[str | None, str | None], list[Record]] = defaultdict(list)
    for row in records.iter_rows(named=True):
        rows[(row["pg_name"], row["pg_ranks"])].append(row)
    groups = []
    for (name, ranks), calls in rows.items():
        by_rank: dict[int, dict[int, Record]] = defaultdict(dict)
        enqueued: dict[int, int] = {}
        for row in calls:
            if not row["is_p2p"] and row["seq"] is not None:
                by_rank[row["rank"]][row["seq"]] = row
                enqueued[row["rank"]] = max(enqueued.get(row["rank"], -1), row["seq"])
        desc = next((row["pg_desc"] for row in calls if row["pg_desc"]), None)
        members = {int(rank) for rank in ranks.split(",")} if ranks else {row["rank"] for row in calls}
        if not ranks and desc == "default_pg":
            members = set(range(max(every) + 1))  # all ranks; how many there are above the highest dump is not told
        if by_rank:
            # A buffer that wrapped may have lost a quiet group's records: such a rank tells nothing about it.
            present = {rank for rank in members & every if rank in by_rank or rank not in wrapped}
            groups.append(Group(name, desc, members, bool(ranks), present, members - every, dict(by_rank), enqueued))
    return groups


def _missing(group: Group) -> _Verdict | None:
    """The first collective that some ranks joined and others did not."""
    last = {rank: group.enqueued.get(rank, -1) for rank in group.present}
    lowest, highest = min(last.values()), max(last.values())
    absent = sorted(group.absent)
    if lowest < highest:
        behind = sorted(rank for rank, seq in last.items() if seq == lowest)
        # A rank without any record of the group is behind all; the others' first record is then what it lacks.
        seqs = sorted({seq for calls in group.calls.values() for seq in calls if seq > lowest})
        waited = [
            seq for seq in seqs if any(_waits(c[seq]) or _failed(c[seq]) for c in group.calls.values() if seq in c)
        ]
        if not waited:
            return None  # who is ahead has all it wanted: nobody hangs here
        seq = waited[0]
        waiting = {rank: calls[seq] for rank, calls in group.calls.items() if seq in calls}
        behind = sorted(rank for rank in group.present if last[rank] < seq) or behind
        at = f"their last is {lowest}" if len(behind) > 1 else f"its last is {lowest}" if lowest >= 0 else "it has none"
        reason = f"did not join {_what(waiting)}, {at}; {_count(waiting)} of {len(group.members)} ranks joined"
        return _Verdict(waiting, behind, behind, reason + _without(absent))
    waiting = {rank: calls[highest] for rank, calls in group.calls.items() if highest in calls}
    if absent and waiting and all(_waits(row) for row in waiting.values()):
        reason = f"no dump, while {_count(waiting)} of {len(group.members)} ranks wait in {_what(waiting)}"
        return _Verdict(waiting, absent, absent, f"{reason}; a rank that has died or is stuck writes none")
    return None


def _mismatch(group: Group) -> _Verdict | None:
    """The first collective on which the ranks differ; who is in the minority is the suspect."""
    for seq in sorted({seq for calls in group.calls.values() for seq in calls}):
        joined = {rank: calls[seq] for rank, calls in group.calls.items() if seq in calls}
        for aspect, told in (("operation", _op), ("sizes", _shape), ("types", _types)):
            values = {rank: told(row) for rank, row in joined.items()}
            counts = Counter(values.values()).most_common()
            if len(counts) < 2:
                continue
            (most, times), (_, next_times) = counts[0], counts[1]
            odd = sorted(rank for rank, value in values.items() if value != most)
            shown = "; ".join(f"{_listed(r for r in values if values[r] == v)}: {v}" for v, _ in counts[:4])
            if times == next_times:
                reason = f"not determinable: {aspect} of {_what(joined)} differ and no side has a majority ({shown})"
                return _Verdict(joined, [], [], reason)
            return _Verdict(joined, [], odd, f"{aspect} of {_what(joined)} differ from the majority's ({shown})")
    return None


def _not_started(group: Group) -> _Verdict | None:
    """All joined the last collective and it does not end: by their states, under backends that report them."""
    last = max(group.enqueued.values())
    joined = {rank: calls[last] for rank, calls in group.calls.items() if last in calls}
    states = {rank: row["op_state"] for rank, row in joined.items()}
    if not any(state in ("started", "completed") for state in states.values()):
        return None  # Gloo, or nothing was ever seen to start: no evidence
    if all(state == "completed" for state in states.values()):
        return None
    idle = sorted(rank for rank, state in states.items() if state == "scheduled")
    if idle and len(idle) < len(states):
        reason = f"enqueued {_what(joined)} but its GPU has not started it; the others' have"
        return _Verdict(joined, [], idle, reason)
    running = sorted(rank for rank, state in states.items() if state != "completed")
    if not any(row["is_retired"] for row in joined.values()) and len(running) == len(states):
        return None  # under way, as in any dump of a healthy job
    reason = (
        f"not determinable: all ranks entered {_what(joined)} and {_listed(running)} did not complete it; "
        "suspect the network or a GPU"
    )
    return _Verdict(joined, [], [], reason)


def _waits(row: Record) -> bool:
    """Whether the collective has not ended on this rank, as far as its record tells.

    NCCL's records end completed; one that is retired without that has timed out. Gloo's never leave `scheduled`.
    """
    if str(row["profiling_name"]).startswith("gloo:"):
        return not row["is_retired"]
    return bool(row["op_state"] != "completed")


def _failed(row: Record) -> bool:
    """Whether a collective that not all ranks joined cannot have succeeded, although its record is closed.

    Gloo retires a record when its timeout is caught, too. A broadcast's root, or a reduction's leaf, may well be done.
    """
    return str(row["profiling_name"]).startswith("gloo:") and _op(row).startswith(_NEEDS_ALL)


def _op(row: Record) -> str:
    return str(row["op"])


def _shape(row: Record) -> str:
    op = _op(row)
    into = "any" if any(name in op for name in _UNEVEN_INPUT) and "reduce" not in op else row["input_sizes"]
    uneven_output = any(name in op for name in _UNEVEN_OUTPUT) and "all_gather" not in op and "allgather" not in op
    return f"{into} -> {'any' if uneven_output else row['output_sizes']}"


def _types(row: Record) -> str:
    op = _op(row)
    is_uneven = op.startswith(_UNEVEN_TYPES) or not row["input_dtypes"]
    return "any" if is_uneven else f"{row['input_dtypes']} -> {row['output_dtypes']}"


def _what(joined: Mapping[int, Record]) -> str:
    (op, _), *_others = Counter(_op(row) for row in joined.values()).most_common()
    return f"{op} seq {next(iter(joined.values()))['seq']}"


def _count(waiting: Mapping[int, Record]) -> int:
    return len(waiting)


def _without(absent: list[int]) -> str:
    return f"; there is no dump of {_listed(absent)}" if absent else ""


def _first_wait(verdict: _Verdict) -> int:
    return min((row["created_ns"] or 1 << 62 for row in verdict.waiting.values()), default=1 << 62)


def _row(verdict: _Verdict, group: Group, dumps: Mapping[int, int], *, is_first: bool) -> dict[str, Any]:
    rank = min(verdict.waiting, key=lambda one: (one in verdict.suspects, one))
    row = verdict.waiting[rank]
    return {
        "source": dumps[rank], "line_no": row["line_no"], "op": row["op"], "seq": row["seq"],
        "process_group": group.title, "numel_in": _numel(row["input_sizes"]), "numel_out": _numel(row["output_sizes"]),
        "timeout_ms": row["timeout_ms"], "ran_for_ms": None, "num_ranks": len(group.members),
        "ranks_reporting": _listed(verdict.waiting), "ranks_silent": _listed(verdict.silent), "ranks_elsewhere": None,
        "suspect": _listed(verdict.suspects), "suspect_reason": verdict.reason, "is_first": is_first,
        "evidence_source": "flight_recorder",
    }  # fmt: skip


def _numel(sizes: str | None) -> int | None:
    """Elements over all shapes."""
    if sizes is None:
        return None
    total = 0
    for shape in json.loads(sizes):
        product = 1
        for size in shape:
            if size is None or product > 1 << 50:
                return None
            product *= size
        total += product
    return total


def _listed(ranks: Iterable[int]) -> str | None:
    return ",".join(str(rank) for rank in sorted(ranks)) or None
