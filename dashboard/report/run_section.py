"""The section on one run: how it ended and by which lines, its curves, and the source of each setting."""

from __future__ import annotations

from functools import partial

from sweepscope.dashboard.charts import steps as steps_chart
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.queries import run as queries
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.report.section import Listing, Picture, Section
from sweepscope.dashboard.text import run as texts
from sweepscope.dashboard.text import run_sections as section_texts
from sweepscope.dashboard.text import run_steps as step_texts
from sweepscope.dashboard.view_models import curves

_EVIDENCE = names("line_no kind rank host text")
_SETTINGS = names("name value setting_source is_used source_path line_no")
_ARGUMENTS = names("name value setting_source source_path line_no")
_MOST = 200


def run(con: Reader, run_id: str, theme: Theme) -> Section:
    """What the page of a run says. Raises LookupError where the store has no such run."""
    found = queries.run(run_id).run(con)
    if found.is_empty():
        raise LookupError(run_id)
    row = found.row(0, named=True)
    evidence, points = queries.evidence(run_id).run(con), queries.steps(run_id).run(con)
    last_line = points["line_no"].max() if points.height else None
    settings, arguments = queries.settings(run_id).run(con), queries.arguments(run_id).run(con)
    pictures = []
    for measure in curves.offered(points) if points.height else []:
        curve = curves.curve(
            points, measure, warmup_steps=row["warmup_steps_dropped"] or 0, median=row.get(measure.column)
        )
        draw = partial(steps_chart.draw, curve, theme, step_texts.axis(row))
        pictures.append(Picture(measure.title, draw, section_texts.curve_alt(curve)))
    listings = [
        Listing("Evidence lines", evidence, _EVIDENCE, most=_MOST),
        Listing("Settings and their sources", settings, _SETTINGS, most=_MOST),
        Listing("Launched with", arguments, _ARGUMENTS, most=_MOST),
    ]
    return Section(
        "run",
        texts.title(row),
        texts.answer(row, evidence.to_dicts(), int(last_line) if isinstance(last_line, int) else None),
        texts.conditions(row),
        (row["origin"],),
        figures=texts.figures(row),
        pictures=pictures,
        listings=[listing for listing in listings if listing.frame.height],
        queries={"Run": queries.run(run_id), "Evidence": queries.evidence(run_id), "Steps": queries.all_steps(run_id)},
        notes=[section_texts.source_note(row, found=int(evidence["found"][0]) if evidence.height else 0)],
    )
