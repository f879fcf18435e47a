"""A row of `nccl_hangs`, whatever shows the hang: lines of the watchdog, or dumps of the flight recorder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def hang_row(
    at: Mapping[str, Any],
    *,
    group: str | None,
    numel_in: int | None,
    numel_out: int | None,
    num_ranks: int | None,
    reporting: Iterable[int],
    silent: Iterable[int],
    elsewhere: Iterable[int],
    suspects: Iterable[int],
    reason: str,
    is_first: bool,
    evidence_source: str,
    ran_for_ms: int | None = None,
) -> dict[str, Any]:
    """The row, with `source` in place of the path.

    Args:
        at: `source`, `line_no`, `op`, `seq` and `timeout_ms` of the collective where it is first reported.
        group: name of the process group.
        numel_in: elements of the input.
        numel_out: elements of the output.
        num_ranks: size of the process group.
        reporting: ranks that wait.
        silent: ranks of which nothing is known to wait.
        elsewhere: ranks that wait in another collective.
        suspects: ranks that are the likely cause.
        reason: why these, or why none.
        is_first: whether no other collective began to wait before.
        evidence_source: a word of vocab.HANG_EVIDENCE.
        ran_for_ms: how long it was waited for.
    """
    return {
        "source": at["source"],
        "line_no": at["line_no"],
        "op": at["op"],
        "seq": at["seq"],
        "process_group": group,
        "numel_in": numel_in,
        "numel_out": numel_out,
        "timeout_ms": at["timeout_ms"],
        "ran_for_ms": ran_for_ms,
        "num_ranks": num_ranks,
        "ranks_reporting": listed(reporting),
        "ranks_silent": listed(silent),
        "ranks_elsewhere": listed(elsewhere),
        "suspect": listed(suspects),
        "suspect_reason": reason,
        "is_first": is_first,
        "evidence_source": evidence_source,
    }


def listed(ranks: Iterable[int]) -> str | None:
    """Ranks in order, separated by a comma; None for none."""
    return ",".join(str(rank) for rank in sorted(ranks)) or None
