"""The ratios that decide a run's layout, and the overlap checklist, on its page."""

from __future__ import annotations

from typing import Any

import streamlit as st

from sweepscope.dashboard.queries import run as queries
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.text import ratios as texts
from sweepscope.dashboard.widgets import basic, lists
from sweepscope.pipeline.estimate.advice.overlap_checklist import checklist, launch_facts


def draw(con: Reader, run: dict[str, Any], *, has_arguments: bool = True) -> None:
    """Both beside each other; the ratios only where the run has an estimate or NCCL output.

    `has_arguments`: whether the store has the table `arguments`, which older versions did not write.
    """
    found = queries.ratios(run["run_id"]).run(con)
    values = found.row(0, named=True) if found.height else {}
    spent: list[tuple[str, str]] = []
    if texts.has_ratios(values):
        spent = [*texts.communication(values), *texts.deciding(values, run["gas"])]
    if values:
        spent += texts.contention(values)
    left, right = st.columns(2, gap="large")
    with left, st.container(gap="xsmall"):
        basic.section("The ratios that decide", "~ estimated; what shows is not hidden by compute")
        if spent:
            lists.rows([(basic.rich(name), basic.rich(value)) for name, value in spent])
            if note := texts.beaten(run["step_time_s"], values.get("est_step_time_s")):
                basic.note(note)
        else:
            basic.note(texts.NO_RATIOS)
    with right, st.container(gap="xsmall"):
        launched = launch_facts(queries.arguments(run["run_id"]).run(con)) if has_arguments else {}
        items = checklist({**run, **launched, "est_fits": values.get("est_fits")})
        basic.section("Overlap checklist", texts.checklist_qualifier(items))
        lists.rows([(basic.rich(item.name), basic.rich(texts.checked(item))) for item in items])
