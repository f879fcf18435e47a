"""The suspects of a hang, and the reason why these or why none.

A rank that reports a timeout has waited, and is a victim as a rule. The cause is a rank that never entered the
collective, because it died, is stuck elsewhere, or took another path; or, where all entered it, the network or a GPU. A
suspect is named on one of five grounds only, in this order: it died before the others gave up; PyTorch's desync report
names it; its status shows fewer enqueued collectives; it is one of few silent ranks; no other rank is left. Otherwise
`suspect_reason` names what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sweepscope.pipeline.nccl.hang_row import listed


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
    waits = "; ".join(f"{listed(h.reporters)} in {h.op} seq {h.seq}" for h in [case.hang, *case.others])
    quiet = f"; {listed(case.silent)} are silent" if case.silent else ""
    dump = "a flight recorder dump would show where their order parts"
    return [], f"not determinable: ranks wait in different collectives ({waits}){quiet}; {dump}"


def _ranks(number: int) -> str:
    return f"{number} rank{'' if number == 1 else 's'}"


def _without_timeout(hang: Hang) -> list[int]:
    """Ranks, as the group counts them, below the highest that reported and that did not report themselves.

    `[rank37]:` is the job's rank, and `[Rank 1]` behind it the group's.
    """
    reported = {row["printed_rank"] for row in hang.reporters.values() if row["printed_rank"] is not None}
    return sorted(set(range(max(reported, default=0))) - reported)


def _unknown_group(case: Case) -> Verdict | None:
    if case.silent is not None:
        return None
    within = _without_timeout(case.hang)
    names = f"rank{'s' if len(within) > 1 else ''} {listed(within)}"
    quiet = f" {names} of the group printed no timeout;" if within else ""
    waited = f"{_ranks(case.waiting)} timed out on {case.what};"
    return [], f"not determinable: {waited}{quiet} the group's other ranks are not printed"


def _all_present(case: Case) -> Verdict | None:
    if case.silent:
        return None
    waited = f"all {_ranks(case.waiting)} entered {case.what}, none is missing"
    return [], f"not determinable: {waited}; suspect the network or a GPU"


def _few_silent(case: Case) -> Verdict | None:
    silent = case.silent or []
    if len(silent) >= case.waiting:
        return None
    return silent, f"silent while {case.waiting} of {case.waiting + len(silent)} timed out on {case.what}"


def _too_many_silent(case: Case) -> Verdict:
    quiet = len(case.silent or [])
    total = case.waiting + quiet
    return [], f"not determinable: {quiet} of {total} ranks are silent while {case.waiting} timed out on {case.what}"
