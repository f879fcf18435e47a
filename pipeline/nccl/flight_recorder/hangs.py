"""The collective that hangs according to the dumps of a job's ranks, and the suspects.

Three checks per process group, in this order: ranks that did not join the first collective that some joined; ranks
whose operation, sizes or types differ from the majority's; and, where all joined and nothing differs, ranks that have
not started what the others have. There may be several suspects, and a missing dump is a finding, not an error. A rank
that waits in another group's collective is no suspect: the suspects of that collective are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from sweepscope.pipeline.nccl.flight_recorder.groups import UNENDED, Group, Pending, Record, groups_of
from sweepscope.pipeline.nccl.flight_recorder.records import (
    failed,
    is_gloo,
    numel,
    op_of,
    sees_starts,
    shape,
    types,
    waits,
)
from sweepscope.pipeline.nccl.hang_row import hang_row, listed


def flight_hangs(
    records: pl.DataFrame, *, empty: Collection[int] = (), unread: Collection[int] = ()
) -> list[dict[str, Any]]:
    """Rows of `nccl_hangs` for the dumps of one job: at most one per process group, none where nothing hangs.

    Args:
        records: rows of `flight_records` with `source`; dumps whose name has no rank are left out.
        empty: ranks whose dumps hold no record.
        unread: ranks whose dumps cannot be read.
    """
    known = records.drop_nulls("rank").sort("rank", "line_no")
    dumps = dict(known.select("rank", "source").unique().iter_rows())
    groups, pending = groups_of(known, empty=empty, unread=unread)
    judged = ((_missing(group) or _mismatch(group) or _not_started(group), group) for group in groups)
    idle = dict.fromkeys((*dumps, *empty), "waits in nothing")
    busy = {*known.filter(pl.col("op_state").is_in(UNENDED))["rank"], *(set(unread) - set(idle))}
    found = _traced([(verdict, group) for verdict, group in judged if verdict], pending, busy, idle)
    # One whose suspects all wait elsewhere is not the first, although its wait may have begun before theirs.
    first = min(((verdict.follows, _first_wait(verdict)) for verdict, _ in found), default=None)
    return [_row(v, group, dumps, is_first=(v.follows, _first_wait(v)) == first) for v, group in found]


@dataclass(frozen=True)
class _Verdict:
    """A collective that hangs: the records of the ranks that wait in it, the suspects and why."""

    waiting: Mapping[int, Record]
    silent: list[int]
    suspects: list[int]
    reason: str
    elsewhere: Sequence[int] = ()  # suspects that wait in another group's collective

    @property
    def follows(self) -> bool:
        """Whether all missing ranks wait elsewhere."""
        return bool(self.elsewhere) and not self.suspects


def _traced(
    found: list[tuple[_Verdict, Group]], pending: Mapping[int, Pending], busy: set[int], state_of: Mapping[int, str]
) -> list[tuple[_Verdict, Group]]:
    """The verdicts, without suspects that wait in another group's collective, a send or a receive themselves.

    Where these wait for one another in a circle, the order of their collectives differs. Then the few that took
    another path than most of the group stay suspects. Where they wait for a rank that waits in nothing (ranks of `busy`
    may) or has no dump, that rank is the suspect.
    """
    positions: dict[int, list[int]] = defaultdict(list)
    for position, (verdict, _) in enumerate(found):
        for rank in set(verdict.waiting) - set(verdict.suspects):
            if waits(verdict.waiting[rank]) or failed(verdict.waiting[rank]):
                positions[rank].append(position)
    traced = []
    for position, (verdict, group) in enumerate(found):
        others = {rank: [found[at] for at in positions.get(rank, ()) if at != position] for rank in verdict.silent}
        where = {
            rank: f"{_what(other[0][0].waiting)} of {other[0][1].title}" for rank, other in others.items() if other
        }
        calls = {rank: pending[rank] for rank in verdict.silent if rank in pending and rank not in where}
        where |= {rank: call.call for rank, call in calls.items()}
        if not where:
            traced.append((verdict, group))
            continue
        waits_elsewhere = "; ".join(f"{rank} waits in {call}" for rank, call in sorted(where.items()))
        is_circle = any(set(v.suspects) & set(verdict.waiting) for other in others.values() for v, _ in other)
        left = [rank for rank in verdict.suspects if rank not in where]
        if is_circle and not left and len(verdict.waiting) > len(verdict.suspects):
            left = verdict.suspects
        idle = sorted({call.peer for call in calls.values() if call.peer is not None} - busy)
        if left:
            reason = f"{verdict.reason}; {waits_elsewhere}"
        elif idle:
            ends = "; ".join(f"{rank}, for which they wait, {state_of.get(rank, 'has no dump')}" for rank in idle)
            reason = f"{waits_elsewhere} and so {verdict.reason}; {ends}"
        else:
            reason = f"not determinable here: {waits_elsewhere} and so {verdict.reason}"
        traced.append((replace(verdict, suspects=left or idle, reason=reason, elsewhere=sorted(where)), group))
    return traced


def _missing(group: Group) -> _Verdict | None:
    """The first collective that some ranks joined and others did not."""
    last = {rank: group.enqueued.get(rank, -1) for rank in group.present}
    lowest, highest = min(last.values()), max(last.values())
    if lowest < highest:
        behind = sorted(rank for rank, seq in last.items() if seq == lowest)
        # A rank without any record of the group is behind all: it lacks the others' first record.
        seqs = sorted({seq for calls in group.calls.values() for seq in calls if seq > lowest})
        waited = [seq for seq in seqs if any(waits(c[seq]) or failed(c[seq]) for c in group.calls.values() if seq in c)]
        if not waited:
            return None  # those ahead have completed all: no hang
        seq = waited[0]
        waiting = {rank: calls[seq] for rank, calls in group.calls.items() if seq in calls}
        behind = sorted(rank for rank in group.present if last[rank] < seq) or behind
        at = f"their last is {lowest}" if len(behind) > 1 else f"its last is {lowest}" if lowest >= 0 else "it has none"
        reason = f"did not join {_what(waiting)}, {at}; {len(waiting)} of {len(group.members)} ranks joined"
        return _Verdict(waiting, behind, behind, reason + _without(group))
    waiting = {rank: calls[highest] for rank, calls in group.calls.items() if highest in calls}
    if not (waiting and all(waits(row) for row in waiting.values())):
        return None
    here = f"{len(waiting)} of {len(group.members)} ranks wait in {_what(waiting)}"
    if absent := sorted(group.absent):
        reason = f"no dump, while {here}; a rank that has died or is stuck writes none"
        return _Verdict(waiting, absent, absent, reason)
    if group.unread:
        return _Verdict(waiting, [], [], f"not determinable: {here}{_without(group)}")
    return None


def _mismatch(group: Group) -> _Verdict | None:
    """The first collective on which the ranks differ; who is in the minority is the suspect."""
    last = (calls[max(calls)] for calls in group.calls.values())
    if not any(waits(row) or failed(row) for row in last):
        return None  # no hang
    for seq in sorted({seq for calls in group.calls.values() for seq in calls}):
        joined = {rank: calls[seq] for rank, calls in group.calls.items() if seq in calls}
        for aspect, value_of in (("operation", op_of), ("sizes", shape), ("types", types)):
            values = {rank: value_of(row) for rank, row in joined.items()}
            counts = Counter(values.values()).most_common()
            if len(counts) < 2:
                continue
            (most, times), (_, next_times) = counts[0], counts[1]
            odd = sorted(rank for rank, value in values.items() if value != most)
            shown = "; ".join(f"{listed(r for r in values if values[r] == v)}: {v}" for v, _ in counts[:4])
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
    running = sorted(rank for rank, state in states.items() if state != "completed")
    if not running or any(is_gloo(row) for row in joined.values()):
        return None  # Gloo's records never show the end
    idle = [rank for rank in running if states[rank] == "scheduled" and sees_starts(group.calls[rank])]
    if idle and len(idle) < len(states):
        reason = f"enqueued {_what(joined)} but its GPU has not started it; the others' have"
        return _Verdict(joined, [], idle, reason)
    if not any(joined[rank]["is_retired"] for rank in running) and len(running) == len(states):
        return None  # under way, as in any dump of a healthy job
    reason = (
        f"not determinable: all ranks entered {_what(joined)} and {listed(running)} did not complete it; "
        "suspect the network or a GPU"
    )
    return _Verdict(joined, [], [], reason)


def _what(joined: Mapping[int, Record]) -> str:
    (op, _), *_others = Counter(op_of(row) for row in joined.values()).most_common()
    return f"{op} seq {next(iter(joined.values()))['seq']}"


def _without(group: Group) -> str:
    lost = f"; there is no dump of {listed(group.absent)}" if group.absent else ""
    return lost + (f"; the dump of {listed(group.unread)} cannot be read" if group.unread else "")


def _first_wait(verdict: _Verdict) -> int:
    return min((row["created_ns"] or 1 << 62 for row in verdict.waiting.values()), default=1 << 62)


def _row(verdict: _Verdict, group: Group, dumps: Mapping[int, int], *, is_first: bool) -> dict[str, Any]:
    rank = min(verdict.waiting, key=lambda rank: (rank in verdict.suspects, rank))
    row = verdict.waiting[rank]
    return hang_row(
        {**row, "source": dumps[rank]},
        group=group.title,
        numel_in=numel(row["input_sizes"]),
        numel_out=numel(row["output_sizes"]),
        num_ranks=len(group.members),
        reporting=verdict.waiting,
        silent=verdict.silent,
        elsewhere=verdict.elsewhere,
        suspects=verdict.suspects,
        reason=verdict.reason,
        is_first=is_first,
        evidence_source="flight_recorder",
    )
