"""Sentences of the page on one hang, each computed from its rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

import polars as pl

from sweepscope.dashboard.format.numbers import capital, count, number, seconds
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text.network import file_line
from sweepscope.dashboard.view_models.hang import STEP_STATE, Sequence2D
from sweepscope.dashboard.view_models.network import (
    RANK_STATE,
    ranks_of,
    ranks_text,
)
from sweepscope.schemas.vocab.nccl import HANG_EVIDENCE

NONE_CHOSEN = (
    "**No hang is chosen.** Choose one below, or follow a link from Network, from Failures & cost or from a run."
)
NO_HANG = "**No collective timed out in this store.**"
HOW_TO_READ = (
    "**How to read it.** A rank that reports a timeout is a victim as a rule: it waited. The cause is a rank that "
    "never entered the collective, or, where all entered it, the network or a GPU. A suspect is named only when it "
    "failed before the others gave up, reports that it had enqueued less, is one of few without output, or, in "
    "dumps, did not join or brought another operation, size or type than the majority.",
    "**What it hides.** A rank is silent when its lines are missing from the file as well as when it is stuck: look "
    "whether the log holds every rank. The watchdog sees when it looks, not when a kernel ended, so times are upper "
    "bounds. Sequence numbers count within a process group. Under Gloo a record's state means nothing, only whether it "
    "was let go.",
)


def title(hang: Row) -> str:
    """The page's title."""
    return f"Hang: {hang_title(hang)}"


def meta(hang: Row, collectives: int, size: int | None) -> str:
    """Its file, its evidence, and how much else timed out."""
    parts = [file_line(hang), HANG_EVIDENCE[hang["evidence_source"]]]
    if size:
        parts.append(f"group of {count(size, 'rank')}")
    if collectives > 1:
        which = "the first" if hang["is_first"] else "not the first"
        parts.append(f"{count(collectives, 'collective')} timed out, this is {which}")
    return " · ".join(parts)


def figures(hang: Row, states: pl.DataFrame) -> list[tuple[str, str, str]]:
    """Label, value and note of the plain figures."""
    waiting = states.filter(pl.col("state") == "waited").height
    silent = len(set(ranks_of(hang["ranks_silent"])) & set(states["rank"]))
    behind = states.filter(pl.col("ahead") < 0)
    details = [] if hang["seq"] is None else [f"seq {number(hang['seq'])}"]
    if hang["numel_in"] is not None:
        details.append(count(hang["numel_in"], "element"))
    waited = "not logged" if hang["ran_for_ms"] is None else seconds(hang["ran_for_ms"] / 1000)
    timeout = "" if hang["timeout_ms"] is None else f"timeout {seconds(hang['timeout_ms'] / 1000)}"
    num_behind = number(behind.height) if states["ahead"].count() else "not logged"
    noun = "rank" if behind.height == 1 else "ranks"
    return [
        ("Collective", str(hang["op"] or "not named"), " · ".join(details)),
        ("Waited", waited, timeout),
        ("Ranks that waited", number(waiting), f"of {number(states.height)}" if states.height else ""),
        ("Ranks without output", number(silent), "of the group" if hang["num_ranks"] else "group size not logged"),
        ("Behind", num_behind, f"{noun} {_few(behind['rank'].to_list())}" if behind.height else ""),
    ]


def _few(ranks: Sequence[int]) -> str:
    shown = ", ".join(str(rank) for rank in ranks[:6])
    return shown if len(ranks) <= 6 else f"{shown} and {number(len(ranks) - 6)} more"


def ahead_text(ahead: int | None) -> str | None:
    """How far a rank is from the collective that hangs.

    >>> ahead_text(0), ahead_text(-2), ahead_text(3), ahead_text(None)
    ('in it', '2 behind', '3 ahead', None)
    """
    if ahead is None:
        return None
    return "in it" if ahead == 0 else f"{number(-ahead)} behind" if ahead < 0 else f"{number(ahead)} ahead"


def collective_option(hang: Row) -> str:
    """One collective of the incident, for a list to choose from."""
    waits = hang["ranks_reporting"]
    return f"{hang_title(hang)}{f' · ranks {ranks_text(waits)}' if waits else ''}"


def incident(hang: Row) -> str:
    """A hang in a list: the suspect and why, the ranks that waited and those without output."""
    who = [
        f"{label}: {ranks_text(hang[name])}."
        for name, label in (("ranks_reporting", "Waited"), ("ranks_silent", "No output"))
        if hang[name]
    ]
    return " ".join([hang_answer(hang), *who])


def sequence_text(steps: Sequence2D, absent: Sequence[int]) -> str:
    """What the marks mean, and whose dump is missing."""
    used = {state for cells in steps.cells.values() for state in cells.values()}
    legend = " · ".join(mark.text for state, mark in STEP_STATE.items() if state in used)
    missing = f" No dump of rank {_few(absent)}." if absent else ""
    return f"{legend}.{missing}"


def sequence_alt(steps: Sequence2D, hang: Row) -> str:
    """The picture in one sentence."""
    absent = [rank for rank in steps.ranks if steps.cells[rank].get(hang["seq"]) == "absent"]
    who = f"; rank {_few(absent)} did not join" if absent else ""
    return f"Collectives around seq {hang['seq']} on {count(len(steps.ranks), 'rank')}{who}."


def evidence_line(row: Row) -> tuple[int | None, str, str]:
    """Line number, text and remark of one line."""
    who = "" if row["rank"] is None else f"rank {row['rank']}"
    return row["line_no"], row["text"], f"{who} · {PurePath(row['source_path']).name}:{row['line_no']}".lstrip(" ·")


def stack_title(rank: int, row: Row) -> str:
    """Where a rank was when it enqueued its last collective of the group."""
    return f"rank {rank}, {row['op']} seq {row['seq']} ({row['op_state']})"


def hang_title(row: Row) -> str:
    """A hang in a few words.

    >>> hang_title({"op": "ALLREDUCE", "seq": 118, "process_group": "0"})
    'ALLREDUCE seq 118 of group 0'
    """
    op = row["op"] or "A collective"
    seq = "" if row["seq"] is None else f" seq {row['seq']}"
    group = "" if row["process_group"] is None else f" of group {row['process_group']}"
    return f"{op}{seq}{group}"


_RANKS = re.compile(r"(?<=\branks )\d+(?:, ?\d+)+")
"""A list of ranks in a reason of the store."""


def hang_answer(row: Row) -> str:
    """Who is the suspect and why, or that it cannot be determined."""
    reason = _RANKS.sub(lambda found: ranks_text(found[0]), row["suspect_reason"] or "")
    reason = reason.rstrip(".")  # a quoted line may end a sentence itself
    if row["suspect"] is None:
        why = reason.removeprefix("not determinable").lstrip(": ")
        return "**Not determinable.** " + (f"{capital(why)}." if why else "The lines do not show it.")
    noun = "ranks" if "," in row["suspect"] else "rank"
    return f"**Suspect: {noun} {ranks_text(row['suspect'])}.** {capital(reason)}."


def hang_meta(row: Row) -> str:
    """How long it waited, by which evidence, in which file."""
    parts = [file_line(row), HANG_EVIDENCE[row["evidence_source"]]]
    if row["ran_for_ms"] is not None:
        parts.append(f"waited {seconds(row['ran_for_ms'] / 1000)}")
    if row["timeout_ms"] is not None:
        parts.append(f"timeout {seconds(row['timeout_ms'] / 1000)}")
    if row["numel_in"] is not None:
        parts.append(f"{number(row['numel_in'])} elements in")
    return " · ".join(parts)


def states_text(states: pl.DataFrame) -> str:
    """How many ranks are in which state, for the legend and as the picture's text."""
    counted = Counter(states["state"].to_list())
    return " · ".join(f"{mark.text}: {number(counted[name])}" for name, mark in RANK_STATE.items() if counted[name])
