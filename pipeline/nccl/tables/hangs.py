"""The fold for hangs: collectives that timed out, the ranks that waited in them, those that are missing, the suspects.

A rank that reports a timeout has waited, and is a victim as a rule. The cause is a rank that never entered the
collective, because it died, is stuck elsewhere, or took another path; or, where all entered it, the network or a GPU. A
suspect is named on one of five grounds only, in this order: it died before the others gave up; PyTorch's desync report
names it; its status shows fewer enqueued collectives; it is one of few silent ranks; no other rank is left. Otherwise
`suspect_reason` names what is missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import polars as pl

_UNINITIALISED = 1 << 40  # old builds print garbage as the last completed collective when nothing had completed


@dataclass
class Hang:
    """One collective in which ranks gave up waiting."""

    op: str
    seq: int | None
    group: str | None
    timeout_ms: int | None
    first: dict[str, Any]
    reporters: dict[int, dict[str, Any]] = field(default_factory=dict)
    unnamed: int = 0  # reports without a rank


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
    out = []
    for hang in hangs:
        ranks = _members(hang, size, others=hangs)
        elsewhere = {rank for other in hangs for rank in other.reporters} - set(hang.reporters)
        silent = sorted(ranks - set(hang.reporters) - elsewhere) if ranks is not None else None
        beside = [other for other in hangs if other is not hang and other.group == hang.group]
        lagging = _lagging(rows) if _is_default(hang) else {}
        suspect, reason = judge(Case(hang, beside, silent, elsewhere | set(hang.reporters), status, died, lagging))
        sizes = hang.reporters[min(hang.reporters)] if hang.reporters else hang.first
        ran = [row["ran_for_ms"] for row in [*hang.reporters.values(), hang.first] if row["ran_for_ms"] is not None]
        out.append(
            {
                "source": hang.first["source"],
                "line_no": hang.first["line_no"],
                "op": hang.op,
                "seq": hang.seq,
                "process_group": hang.group,
                "numel_in": sizes["numel_in"],
                "numel_out": sizes["numel_out"],
                "timeout_ms": hang.timeout_ms,
                "ran_for_ms": max(ran, default=None),
                "num_ranks": len(ranks) if ranks is not None else None,
                "ranks_reporting": _listed(hang.reporters),
                "ranks_silent": _listed(silent or []),
                "ranks_elsewhere": _listed(elsewhere),
                "suspect": _listed(suspect),
                "suspect_reason": reason,
                "is_first": hang is first,
                "evidence_source": "watchdog",
            }
        )
    return out


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


@dataclass(frozen=True)
class Case:
    """One hang with all that is known around it."""

    hang: Hang
    others: list[Hang]  # of the same group
    silent: list[int] | None
    reported: set[int]
    status: Mapping[tuple[str | None, int], Mapping[str, Any]]
    died: Mapping[int, str]
    lagging: Mapping[int, str]  # named by PyTorch

    @property
    def what(self) -> str:
        """The collective in words."""
        return self.hang.op if self.hang.seq is None else f"{self.hang.op} seq {self.hang.seq}"

    @property
    def waiting(self) -> int:
        """How many ranks reported it."""
        return len(self.hang.reporters)


Verdict = tuple[list[int], str]


def judge(case: Case) -> Verdict:
    """Suspects and the reason; no suspects, and why, when it cannot be determined."""
    grounds = (_dead, _named, _behind, _apart, _unknown_group, _all_present, _few_silent)
    return next((verdict for ground in grounds if (verdict := ground(case))), _too_many_silent(case))


def _dead(case: Case) -> Verdict | None:
    dead = sorted(set(case.died) - case.reported)
    if not dead:
        return None
    return dead, f"rank {dead[0]} failed before the others timed out on {case.what}: {case.died[dead[0]]}"


def _named(case: Case) -> Verdict | None:
    named = sorted(set(case.lagging) - set(case.hang.reporters))
    if not named:
        return None
    return named, f"PyTorch's desync report names it: {case.lagging[named[0]]}"


def _behind(case: Case) -> Verdict | None:
    seq = case.hang.seq
    behind = {
        rank: row["enqueued"]
        for (group, rank), row in case.status.items()
        if group == case.hang.group
        and rank not in case.reported
        and row["enqueued"] is not None
        and seq is not None
        and row["enqueued"] < seq
    }
    if not behind:
        return None
    last = min(behind.values())
    return sorted(behind), f"had enqueued only {last} collectives; {case.waiting} ranks waited in {case.what}"


def _apart(case: Case) -> Verdict | None:
    if not case.others:
        return None
    waits = "; ".join(f"{_listed(h.reporters)} in {h.op} seq {h.seq}" for h in [case.hang, *case.others])
    quiet = f"; {_listed(case.silent)} are silent" if case.silent else ""
    dump = "a flight recorder dump would show where their order parts"
    return [], f"not determinable: ranks wait in different collectives ({waits}){quiet}; {dump}"


def _unknown_group(case: Case) -> Verdict | None:
    if case.silent is not None:
        return None
    return (
        [],
        f"not determinable: {case.waiting} ranks timed out on {case.what}; the group's other ranks are not printed",
    )


def _all_present(case: Case) -> Verdict | None:
    if case.silent:
        return None
    return [], (
        f"not determinable: all {case.waiting} ranks entered {case.what}, none is missing; suspect the network or a GPU"
    )


def _few_silent(case: Case) -> Verdict | None:
    silent = case.silent or []
    if len(silent) >= case.waiting:
        return None
    return silent, f"silent while {case.waiting} of {case.waiting + len(silent)} timed out on {case.what}"


def _too_many_silent(case: Case) -> Verdict:
    quiet = len(case.silent or [])
    total = case.waiting + quiet
    return [], f"not determinable: {quiet} of {total} ranks are silent while {case.waiting} timed out on {case.what}"


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


def _listed(ranks: Iterable[int]) -> str | None:
    return ",".join(str(rank) for rank in sorted(ranks)) or None
