"""A report as one Markdown text: for mails, wikis and merge requests. Charts are their one sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from sweepscope.dashboard.format import columns, numbers
from sweepscope.dashboard.format.emphasis import BOLD
from sweepscope.dashboard.report.page import shown_value
from sweepscope.dashboard.report.section import Listing, Section

_SPECIAL = re.compile(r"([\\`\[\]|*_#<>~])")


def markdown(title: str, about: str, parts: Sequence[Section]) -> str:
    """The whole text, in the dialect of CommonMark with tables. `about` is the line on the store below the title."""
    return "\n".join([f"# {escaped(title)}", "", escaped(about), "", *map(_section, parts)])


def escaped(text: str) -> str:
    """`text` on one line in which nothing is markup but `**fact**`, whatever a name from a log holds.

    >>> escaped("**36 %** of <runs>\\n[x](y)")
    '**36 %** of \\\\<runs\\\\> \\\\[x\\\\](y)'
    """
    plain = " ".join(text.replace(numbers.NBSP, " ").split())
    pieces = BOLD.split(plain)  # every second one was bold
    return "".join(
        f"**{_SPECIAL.sub(_BACKSLASHED, piece)}**" if index % 2 else _SPECIAL.sub(_BACKSLASHED, piece)
        for index, piece in enumerate(pieces)
    )


_BACKSLASHED = r"\\\1"


def _section(part: Section) -> str:
    meta = " · ".join(text for text in (", ".join(part.origins), part.meta) if text)
    lines = [f"## {escaped(part.title)}", "", escaped(part.answer), ""]
    lines += [f"*{escaped(meta)}*", ""] if meta else []
    lines += [
        f"- {escaped(label)}: **{escaped(value)}** {escaped(remark)}".rstrip() for label, value, remark in part.figures
    ]
    lines += [""] if part.figures else []
    for picture in part.pictures:
        lines += [f"{escaped(picture.title)}: {escaped(picture.alt)}", ""]
    for listing in part.listings:
        lines += _listing(listing)
    for note in part.notes:
        lines += [escaped(note), ""]
    if part.queries:
        lines += ["<details><summary>SQL of these figures</summary>", ""]
        for name, query in part.queries.items():
            lines += [f"{escaped(name)}:", "", *_fenced(query.runnable()), ""]
        lines += ["</details>", ""]
    return "\n".join(lines)


def _fenced(sql: str) -> list[str]:
    """A block of code, in a fence that the code does not hold."""
    longest = max((len(run) for run in re.findall(r"`{3,}", sql)), default=2)
    fence = "`" * (longest + 1)
    return [f"{fence}sql", sql, fence]


def _listing(listing: Listing) -> list[str]:
    """A table in shown units. Columns that hold nothing are left out, rows beyond the limit counted."""
    frame = listing.frame
    kept = [name for name in listing.columns if name in frame.columns and frame[name].count()]
    if not kept:
        return []
    rows = [
        "| " + " | ".join(escaped(shown_value(name, row[name])) for name in kept) + " |"
        for row in frame.head(listing.most).iter_rows(named=True)
    ]
    left = frame.height - listing.most
    return [
        f"### {escaped(listing.title)}",
        "",
        "| " + " | ".join(escaped(columns.heading(name)) for name in kept) + " |",
        "|" + "|".join(_alignment(frame.schema[name]) for name in kept) + "|",
        *rows,
        "",
        *([f"{numbers.count(left, 'further row')} not listed.", ""] if left > 0 else []),
    ]


def _alignment(dtype: pl.DataType) -> str:
    return "---:" if dtype.is_numeric() else "---"
