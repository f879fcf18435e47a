"""The sentences of Data health: what was read, what was not, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.dashboard.format.numbers import NBSP, capital, count, number
from sweepscope.dashboard.queries.query import Row
from sweepscope.schemas.vocab import REJECT_REASON_KEPT, REJECT_REASON_LEFT_OUT, REJECT_REASON_UNPARSED


def answer(summary: Row) -> str:
    """How much of what was found could be read."""
    files, others = summary["files"], summary["skipped"] + summary.get("copies", 0) + summary.get("kept", 0)
    needed = files - others
    if files == 0:
        return "**No file was read yet.** Ingest a sweep directory to see here what became of each file."
    lead = f"**{number(summary['parsed'])} of {count(needed, 'file')} were read to their end.**"
    if needed == 1:
        lead = "**The one file was read to its end.**" if summary["parsed"] else "**The one file could not be read.**"
    trouble = []
    if summary["rejected"]:
        trouble.append(f"{count(summary['rejected'], 'file')} could not be read")
    if summary.get("failed"):
        trouble.append(f"{count(summary['failed'], 'file')} could not be read again, so that earlier rows stay")
    if summary["lines_rejected"]:
        trouble.append(f"{count(summary['lines_rejected'], 'line or row', 'lines or rows')} went to rejects")
    if summary["skipped"]:
        lead += f" {count(summary['skipped'], 'more holds', 'more hold')} nothing that a parser knows."
    if summary.get("copies"):
        copies = count(
            summary["copies"], "more is a copy of another, which counts", "more are copies of others, which count"
        )
        lead += f" {copies}."
    if summary.get("kept"):
        lead += f" Rows of {count(summary['kept'], 'file')} that changed or went after they were read are kept."
    if not trouble:
        return f"{lead} Nothing was rejected."
    return f"{lead} {capital(' and '.join(trouble))}; the reasons are listed below."


def size(size_bytes: int) -> str:
    """A file size in the unit that leaves at most four digits (decimal units, as file managers count).

    >>> size(52_000).replace(NBSP, " "), size(3_400_000_000).replace(NBSP, " ")
    ('52 kB', '3.4 GB')
    """
    value, unit = float(size_bytes), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{number(value, 1 if value < 10 and unit != 'B' else 0)}{NBSP}{unit}"


_REMEDIES = {
    "failed": "Follow the reason, then ingest again; until then its earlier rows count.",
    "unread": "Make the file that its reason names readable, then ingest again.",
    "duplicate": "Nothing: the file that its reason names has its rows.",
    "overwritten": "Nothing: it is what the file held before. `sweepscope store forget` removes it.",
    "rotated": "Nothing: its rows are those of a rotated log. `sweepscope store forget` removes them.",
    "shrunk": "Nothing: what was read before counts. `sweepscope store forget` removes it.",
    "gone": "Nothing: what was read before counts. `sweepscope store forget` removes it.",
}


def file_remedy(row: Row) -> str:
    """What to do about files of one kind, status and reason; empty when there is nothing to do."""
    if row["status"] == "rejected":
        # the reader's own words end with the remedy
        return "Follow the reason, then ingest again; the other lines of its run were read."
    if remedy := _REMEDIES.get(row["status"]):
        return remedy
    if row["status"] == "skipped":
        return "Nothing, unless it holds results: then it needs a parser."
    if row.get("secrets_hidden"):
        return "Its lines have tokens, keys or passwords, hidden here: withdraw them, or close the file to others."
    if row["lines_rejected"]:
        return "See its rejected lines below; the rest of the file counts."
    return ""


def reject_remedy(reason: str, table: str | None) -> str:
    """What a rejected line means for the results, and what mends it."""
    known = next((remedy for beginning, remedy in _REJECT_REMEDIES.items() if reason.startswith(beginning)), None)
    if known is not None:
        return known
    row = f"The row is not in {table or 'its table'}."
    if reason.startswith(("must be", "cannot be read as")):
        return f"{row} Check the value at its source."
    if "was cut" in reason:
        return "The rest of that line was not read; training logs have no such lines. Check what wrote it."
    return f"{row} The raw text below shows why."


_REJECT_REMEDIES = {
    REJECT_REASON_UNPARSED: "The step is missing from the medians. A new framework version may print it differently: "
    "report it.",
    REJECT_REASON_KEPT: "The row counts with these values, although they cannot all be right. Check them at their "
    "source.",
    REJECT_REASON_LEFT_OUT: "The value stays empty, the rest of its row counts. Check it at its source if anything "
    "depends on it.",
    "repeats the key": "The first row counts. Two files may describe the same run: keep one of them.",
}
"""By the beginning of the reason."""


def parser_note(row: Row) -> str:
    """Whether files wait to be read again: those that another version of their parser than the present one has read."""
    if row["versions"] == 1:
        return ""
    return f" · one of {row['versions']} versions: the next ingest reads files of earlier ones again"


def parser_name(row: Row) -> str:
    """A parser and its version, a hash.

    >>> parser_name({"parser": "nanotron", "parser_version": 0x3F2A91})
    'nanotron 3f2a91'
    """
    return f"{row['parser']} {row['parser_version'] or 0:x}"


def empty_tables(names: Sequence[str]) -> str:
    """The tables that hold nothing, in one line rather than a row each.

    >>> empty_tables(["nccl_bench", "rejects"]), empty_tables([])
    ('Without rows: nccl_bench, rejects.', 'Every table has rows.')
    """
    return f"Without rows: {', '.join(names)}." if names else "Every table has rows."


def runs_of_origin(runs: int, copies: int) -> str:
    """Run attempts of an origin, and the rows left out because they tell of one of them again.

    >>> runs_of_origin(4080, 42), runs_of_origin(1, 0)
    ('4,080 runs (and 42 duplicates)', '1 run')
    """
    again = f" (and {count(copies, 'duplicate')})" if copies else ""
    return f"{count(runs, 'run')}{again}"


def versions(kept: Sequence[tuple[int, int, bool]]) -> str:
    """The published files on disk: version, bytes and which one counts.

    >>> versions([(12, 3_000_000, True), (11, 2_900_000, False)]).replace(NBSP, " ")
    'Kept: **version 12** (3.0 MB), version 11 (2.9 MB).'
    """
    if not kept:
        return "No numbered version is kept beside this file."
    named = [
        f"{f'**version {version}**' if is_current else f'version {version}'} ({size(size_bytes)})"
        for version, size_bytes, is_current in kept
    ]
    return f"Kept: {', '.join(named)}."
