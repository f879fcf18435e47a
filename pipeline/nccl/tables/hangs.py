"""The fold for hangs: collectives that timed out, with the ranks that waited, the missing ones and the suspects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

import polars as pl

from sweepscope.pipeline.nccl.hang_row import hang_row
from sweepscope.pipeline.nccl.tables.hang_suspects import Case, Hang, judge
from sweepscope.schemas.limits import JUDGED_HANGS

_UNINITIALISED = 1 << 40  # old builds print garbage as the last completed collective when nothing had completed


def hang_rows(facts: pl.DataFrame, *, num_ranks: int | None) -> list[dict[str, Any]]:
    """Rows of `nccl_hangs` for the `watchdog` facts of one run (columns of facts.SCHEMAS and `source`).

    `num_ranks` is the size of the job, if it is known; the size of a process group follows from ALLGATHER's sizes.
    """
    rows = facts.sort("source", "line_no", maintain_order=True).to_dicts()
    status = _status(rows)
    hangs = _distinct(rows, status)
    if not hangs:
        return []
    died = _died_before(rows, min((h.first["source"], h.first["line_no"]) for h in hangs))
    size = num_ranks or max((row["enqueued"] for row in rows if row["kind"] == "world"), default=None)
    begun = {id(hang): _began(hang) for hang in hangs}
    known = [begin for begin in begun.values() if begin is not None]
    first = min(hangs, key=lambda h: begun[id(h)] or datetime.max) if len(known) == len(hangs) else hangs[0]
    judged = hangs[:JUDGED_HANGS]
    out = []
    for number, hang in enumerate(hangs):
        verdict: _Found = _unjudged(len(hangs))
        if number < JUDGED_HANGS:
            verdict = _judged(hang, judged, rows, size=size, status=status, died=died)
        sizes = hang.reporters[min(hang.reporters)] if hang.reporters else hang.first
        ran = [row["ran_for_ms"] for row in [*hang.reporters.values(), hang.first] if row["ran_for_ms"] is not None]
        out.append(
            hang_row(
                hang.first,
                group=hang.group,
                numel_in=sizes["numel_in"],
                numel_out=sizes["numel_out"],
                ran_for_ms=max(ran, default=None),
                reporting=hang.reporters,
                is_first=hang is first,
                evidence_source="watchdog",
                **verdict,
            )
        )
    return out


class _Found(TypedDict):
    num_ranks: int | None
    silent: Sequence[int]
    elsewhere: Collection[int]
    suspects: Sequence[int]
    reason: str


def _judged(
    hang: Hang,
    hangs: list[Hang],
    rows: Iterable[Mapping[str, Any]],
    *,
    size: int | None,
    status: Mapping[tuple[str | None, int], Mapping[str, Any]],
    died: Mapping[int, str],
) -> _Found:
    """What is known of the ranks of a hang, by all hangs of its run."""
    ranks = _members(hang, size, others=hangs)
    elsewhere = {rank for other in hangs for rank in other.reporters} - set(hang.reporters)
    silent = sorted(ranks - set(hang.reporters) - elsewhere) if ranks is not None else None
    beside = [other for other in hangs if other is not hang and other.group == hang.group]
    lagging = _lagging(rows) if _is_default(hang) else {}
    suspects, reason = judge(Case(hang, beside, silent, elsewhere | set(hang.reporters), status, died, lagging))
    return {
        "num_ranks": len(ranks) if ranks is not None else None,
        "silent": silent or [],
        "elsewhere": elsewhere,
        "suspects": suspects,
        "reason": reason,
    }


def _unjudged(number: int) -> _Found:
    reason = f"not judged: {number:,} collectives timed out, of which the first {JUDGED_HANGS} are compared"
    return {"num_ranks": None, "silent": [], "elsewhere": [], "suspects": [], "reason": reason}


def _status(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str | None, int], dict[str, Any]]:
    """The last status that each rank printed of its progress, by group and rank."""
    found = {}
    for row in rows:
        if row["kind"] in ("status", "dump") and row["rank"] is not None:
            completed = row["completed"]
            is_garbage = completed is not None and (completed > _UNINITIALISED or completed > (row["enqueued"] or 0))
            found[(row["group"], row["rank"])] = {**row, "completed": None if is_garbage else completed}
    return found


def _distinct(rows: list[dict[str, Any]], status: Mapping[tuple[str | None, int], Mapping[str, Any]]) -> list[Hang]:
    """Timeouts by operation, sequence number, group and timeout; by sizes, too, where no group is printed, since two
    groups may then wait in collectives of the same number."""
    groups = defaultdict(set)
    for (group, rank), row in status.items():
        if row["seq"] is not None:
            groups[(rank, row["seq"])].add(group)
    found: dict[tuple[object, ...], Hang] = {}
    for row in rows:
        if row["kind"] != "timeout":
            continue
        named = groups.get((row["rank"], row["seq"]), set())
        group = next(iter(named)) if len(named) == 1 else None
        sizes = () if group is not None else (row["numel_in"], row["numel_out"])
        key = (row["op"], row["seq"], group, row["timeout_ms"], *sizes)
        hang = found.setdefault(key, Hang(row["op"], row["seq"], group, row["timeout_ms"], row))
        if row["rank"] is None:
            hang.unnamed += 1
        else:
            hang.reporters.setdefault(row["rank"], row)
    return _joined(list(found.values()))


def _joined(hangs: list[Hang]) -> list[Hang]:
    """Ranks whose group is not printed wait with those of the one group that waits in such a collective, if it is one.

    A rank that is killed before its watchdog prints more has no group.
    """
    named = defaultdict(list)
    for hang in hangs:
        if hang.group is not None:
            named[_signature(hang)].append(hang)
    kept = []
    for hang in hangs:
        same = named[_signature(hang)]
        if hang.group is not None or len(same) != 1:
            kept.append(hang)
            continue
        same[0].first = min(same[0].first, hang.first, key=lambda row: (row["source"], row["line_no"]))
        same[0].reporters = {**hang.reporters, **same[0].reporters}
        same[0].unnamed += hang.unnamed
    return kept


def _signature(hang: Hang) -> tuple[object, ...]:
    return (hang.op, hang.seq, hang.timeout_ms, hang.first["numel_in"], hang.first["numel_out"])


def _members(hang: Hang, size: int | None, *, others: list[Hang]) -> set[int] | None:
    """The ranks of the group; None where they are unknown.

    The default group ("0") has all ranks of the job. The sizes of an all-gather give the size of its group; the members
    of a smaller one than the job are not printed.
    """
    numel_in, numel_out = hang.first["numel_in"], hang.first["numel_out"]
    group_size = None
    if hang.op in ("ALLGATHER", "_ALLGATHER_BASE") and numel_in and numel_out and numel_out % numel_in == 0:
        group_size = numel_out // numel_in
    if hang.op in ("REDUCE_SCATTER", "_REDUCE_SCATTER_BASE") and numel_in and numel_out and numel_in % numel_out == 0:
        group_size = numel_in // numel_out
    if group_size is not None and group_size == len(hang.reporters):
        return set(hang.reporters)
    if group_size is not None and size is not None and group_size < size:
        return None
    all_ranks = size or group_size
    if all_ranks is None or not _is_default(hang):
        return None
    if max((rank for other in others for rank in other.reporters), default=0) >= all_ranks:
        return None  # more ranks than that size, which is then of something else
    return set(range(all_ranks))


def _is_default(hang: Hang) -> bool:
    """Whether it may be the group of all ranks."""
    return hang.group is None or hang.group.startswith("0")


def _lagging(rows: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """The text of a desync report by rank (of the group) that it names."""
    return {row["rank"]: row["text"] for row in rows if row["kind"] == "lags"}


def _died_before(rows: list[dict[str, Any]], first: tuple[int, int]) -> dict[int, str]:
    """Ranks that failed before the first timeout was printed, with what they printed."""
    found: dict[int, str] = {}
    for row in rows:
        if row["kind"] == "died" and row["rank"] is not None and (row["source"], row["line_no"]) < first:
            found.setdefault(row["rank"], row["text"][:160])
    return found


def _began(hang: Hang) -> datetime | None:
    """When the first rank began to wait: the time it gave up less the time it had waited. No year is printed."""
    moments = []
    for row in hang.reporters.values():
        given_up = moment(row["stamp"])
        if given_up is not None and row["ran_for_ms"] is not None:
            moments.append(given_up - timedelta(milliseconds=min(row["ran_for_ms"], 10**10)))
    return min(moments, default=None)


def moment(stamp: str | None) -> datetime | None:
    """A glog stamp (MMDD HH:MM:SS.frac; the month may lack its zero) or an ISO one; glog's have no year: 2000 here."""
    if stamp is None:
        return None
    try:
        if "-" in stamp:
            return datetime.fromisoformat(stamp[:19])
        day, clock = stamp.split(" ")
        return datetime.fromisoformat(f"2000-{day.zfill(4)[:2]}-{day.zfill(4)[2:]} {clock[:15]}")
    except ValueError:
        return None
