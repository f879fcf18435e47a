"""The ratios that decide a run's layout, and the overlap checklist, on its page."""

from __future__ import annotations

from typing import Any

import streamlit as st

from sweepscope.dashboard.queries import run as queries
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.text import ratios as texts
from sweepscope.dashboard.widgets import basic, folds, lists
from sweepscope.pipeline.estimate.advice.overlap_checklist import Item, checklist, launch_facts


def draw(con: Reader, run: dict[str, Any], *, has_arguments: bool = True) -> None:
    """Both beside each other, folded; the ratios only where the run has an estimate or NCCL output.

    `has_arguments`: whether the store has the table `arguments`, which older versions did not write.
    """
    found = queries.ratios(run["run_id"]).run(con)
    values = found.row(0, named=True) if found.height else {}
    spent: list[tuple[str, str]] = []
    if texts.has_ratios(values):
        spent = [*texts.communication(values), *texts.deciding(values, run["gas"])]
    if values:
        spent += texts.contention(values)
    launched = launch_facts(queries.arguments(run["run_id"]).run(con)) if has_arguments else {}
    items = checklist({**run, **launched, "est_fits": values.get("est_fits")})
    beaten = texts.beaten(run["step_time_s"], values.get("est_step_time_s"))
    title = f"{texts.TITLE} · overlap checklist: {texts.checklist_qualifier(items)}"
    folds.fold(title, lambda: _draw_both(spent, beaten, items), key="ratios")


def _draw_both(spent: list[tuple[str, str]], beaten: str, items: list[Item]) -> None:
    left, right = st.columns(2, gap="large")
    with left, st.container(gap="xsmall"):
        basic.section("The ratios that decide", texts.QUALIFIER)
        lists.rows([(basic.rich(name), basic.rich(value)) for name, value in spent])
        if note := beaten if spent else texts.NO_RATIOS:
            basic.note(note)
    with right, st.container(gap="xsmall"):
        basic.section("Overlap checklist", texts.checklist_qualifier(items))
        lists.rows([(basic.rich(item.name), basic.rich(texts.checked(item))) for item in items])
