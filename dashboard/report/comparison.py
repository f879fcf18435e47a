"""Runs against each other: which is faster and how surely, what explains it, and the section on two of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sweepscope.dashboard.charts import compare as charts
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.queries import compare as queries
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.report.section import Listing, Picture, Section
from sweepscope.dashboard.text import compare as texts
from sweepscope.dashboard.text import compare_results
from sweepscope.dashboard.text import compare_sections as section_texts
from sweepscope.dashboard.view_models import compare, compare_curves, compare_losses, compare_speed
from sweepscope.dashboard.view_models.compare import Line, Subject
from sweepscope.dashboard.view_models.compare_losses import Difference
from sweepscope.dashboard.view_models.compare_speed import Race

_LINES = 200


def race(con: Reader, columns: Sequence[Subject]) -> Race:
    """Which column is fastest, with the noise of its lead where the first two are single runs."""
    run = compare_speed.race(columns)
    pair = _first_two(run)
    if not pair:
        return compare_speed.judged(run, None)
    rows = queries.certainty(pair[0].run_ids[0], pair[1].run_ids[0]).run(con).to_dicts()
    return compare_speed.judged(run, rows[0] if rows else None)


def explained(con: Reader, run: Race) -> Difference | None:
    """The waterfalls of the first two of the race subtracted; None where one of them has none."""
    pair = _first_two(run)
    if not pair:
        return None
    found = queries.estimates([one.run_ids[0] for one in pair]).run(con)
    rows = {row["run_id"]: row for row in found.iter_rows(named=True)}
    first, second = (rows.get(one.run_ids[0]) for one in pair)
    return compare_losses.difference(first, second) if first and second else None


def _first_two(run: Race) -> list[Subject]:
    """The first two of a race; none where there are fewer, or where one is a group."""
    pair = [standing.subject for standing in run.standings[:2]]
    return [] if len(pair) < 2 or any(one.is_group for one in pair) else pair


def comparison(con: Reader, run_ids: Sequence[str], theme: Theme) -> Section | None:
    """Single runs side by side; None where the store has fewer than two of them."""
    found = queries.runs(run_ids).run(con)
    columns = compare.subjects([(run_id,) for run_id in run_ids], found)
    if len(columns) < 2:
        return None
    parts = [compare.folded(lines) for lines in compare.configuration_lines(columns).values()]
    differing = [line for part in parts for line in part.shown]
    standing = race(con, columns)
    why = explained(con, standing)
    return Section(
        "compare",
        " against ".join(f"{one.letter}: {one.shared('layout') or 'layout unknown'}" for one in columns),
        texts.answer(standing, columns, why, differing),
        " · ".join(dict.fromkeys(texts.heading(one) for one in columns)),
        tuple(dict.fromkeys(found["origin"])),
        pictures=[*_of_difference(standing, why, theme), *_of_curves(con, columns, theme)],
        listings=[
            _listed("Results", columns, compare_results.lines(columns)),
            _listed("What differs in their configuration", columns, differing),
            _listed("Arguments that differ", columns, _arguments(con, columns)),
        ],
        queries={
            "Runs": queries.runs(run_ids),
            "Settings": queries.settings(run_ids),
            "Arguments": queries.arguments(run_ids),
            "Steps": queries.steps(run_ids),
            "Estimates": queries.estimates(run_ids),
        },
    )


def _of_difference(standing: Race, why: Difference | None, theme: Theme) -> Sequence[Picture]:
    if why is None:
        return []
    first, second = (one.subject.letter for one in standing.standings[:2])
    title, qualifier = section_texts.difference_title(why, first, second)
    draw = partial(charts.draw_difference, why, theme)
    return [Picture(f"{title}: {qualifier}", draw, section_texts.difference_alt(why, first, second))]


def _of_curves(con: Reader, columns: Sequence[Subject], theme: Theme) -> Sequence[Picture]:
    steps = queries.steps([one.run_ids[0] for one in columns]).run(con)
    curves = [compare_curves.overlay(columns, steps, measure) for measure in compare_curves.measures(steps)]
    return [
        Picture(one.measure.title, partial(charts.draw_curves, one, theme), section_texts.curves_alt(one))
        for one in curves
    ]


def _arguments(con: Reader, columns: Sequence[Subject]) -> Sequence[Line]:
    stated = queries.arguments([one.run_ids[0] for one in columns]).run(con)
    return compare.folded(compare.raw_lines(columns, stated), is_raw=True).shown


def _listed(title: str, columns: Sequence[Subject], lines: Sequence[Line]) -> Listing:
    frame = compare.table(columns, lines, lambda one: one.letter)
    return Listing(title, frame, frame.columns, most=_LINES)
