"""Writes the report of one home: `python -m sweepscope.dashboard.report.write OUT FORM ORIGIN SWEEP SINCE`.

A process of its own, started by name like the dashboard's server: the command line lies below the dashboard and
imports nothing of it. Prints what was written as one JSON document; errors go to stderr, in one line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import duckdb

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.emphasis import without_marks
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.queries.reader import Answers, Reader
from sweepscope.dashboard.report.build import Asked, sections
from sweepscope.dashboard.report.markdown import markdown
from sweepscope.dashboard.report.page import page
from sweepscope.dashboard.report.section import Section
from sweepscope.pipeline.errors import StoreError, SweepscopeError, UsageError
from sweepscope.pipeline.estimate.calibration.own_runs import with_own
from sweepscope.pipeline.store import published
from sweepscope.pipeline.store.published import StoreInfo

TITLE = "sweepscope report"


def write(out: Path, asked: Asked, *, form: str = "html") -> dict[str, object]:
    """Write the report of the current home as html or md. Returns what it holds. Raises SweepscopeError, OSError."""
    home = published.default_home()
    path = published.current(home)
    with published.connect(path) as connection:
        info = published.store_info(connection)
        try:
            parts, absent = sections(Reader(connection, Answers()), asked, LIGHT, with_own(home / "calibration"))
        except duckdb.Error as error:
            raise StoreError(
                f"The store {path} lacks what the report needs ({str(error).splitlines()[0]}): another version of "
                "sweepscope published it. Run `sweepscope ingest PATH` with this one: it publishes the store anew."
            ) from error
    if absent:
        wanted = ", ".join(f"{name} {getattr(asked, name)}" for name in absent)
        raise UsageError(f'This store has no run of {wanted}. `sweepscope query` with "from runs" shows what it has.')
    text = document(info, parts, form=form)
    out.write_text(text, encoding="utf-8")
    return {
        "report": str(out.absolute()),
        "bytes": len(text.encode()),
        "version": info.version,
        "sections": [_summary(part) for part in parts],
    }


def document(info: StoreInfo, parts: Sequence[Section], *, form: str = "html") -> str:
    """The report of some sections as html or md; `info` is of the store that they were asked of."""
    about = (
        f"Store version {info.version} of {numbers.moment(info.published_at)} UTC, sweepscope {info.package_version}"
    )
    return markdown(TITLE, about, parts) if form == "md" else page(TITLE, about, parts, LIGHT)


def _summary(part: Section) -> dict[str, object]:
    return {
        "section": part.key,
        "title": part.title,
        "answer": without_marks(part.answer).replace(numbers.NBSP, " "),
        "origins": list(part.origins),
        "charts": [picture.title for picture in part.pictures],
        "sql": {name: query.runnable() for name, query in part.queries.items()},
    }


def main(out: str, form: str = "html", origin: str = "", sweep: str = "", since: str = "") -> int:
    """The exit code. An empty origin or sweep: what the dashboard shows first. `since` is a date, YYYY-MM-DD."""
    asked = Asked(origin or None, sweep or None, date.fromisoformat(since) if since else None)
    try:
        written = write(Path(out), asked, form=form)
    except SweepscopeError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except OSError as error:
        sys.stderr.write(f"{error.filename or out}: {error.strerror}. Give another file with --out.\n")
        return 1
    sys.stdout.write(json.dumps(written, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
