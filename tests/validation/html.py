"""The validation report as one HTML file: the printed tables, and the plots that tables cannot show."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import polars as pl

from sweepscope.pipeline.estimate.calibration.cross_validate import Unseen
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.schemas.thresholds import PENALISED_RATIO
from tests.validation.report import strategy

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>How accurate the estimator is</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 1080px; margin: 2rem auto; padding: 0 1rem; color: #1b1f24 }}
table {{ border-collapse: collapse; margin: .5rem 0 2rem; font-size: 13px }}
th, td {{ border-bottom: 1px solid #d9dde3; padding: .25rem .7rem; text-align: left; vertical-align: top }}
th {{ background: #f3f5f8 }} h2 {{ margin-top: 2.5rem }} p {{ max-width: 75ch }}
</style>
<h1>How accurate the estimator is</h1>{body}</html>
"""


def table_html(frame: pl.DataFrame) -> str:
    """A frame as a table; every cell is escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in frame.columns)

    def cell(value: object) -> str:
        text = "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
        return f"<td>{escape(text)}</td>"

    rows = "".join("<tr>" + "".join(cell(value) for value in row) + "</tr>" for row in frame.iter_rows())
    return f"<table><tr>{head}</tr>{rows}</table>"


def _labels(unseen: Unseen, kept: Array) -> list[str]:
    table = unseen.rows.table
    names = [n for n in ("model", "num_gpus", "dp", "tp", "pp", "micro_batch_size", "grad_accum") if n in table.columns]
    rows = table.select(names).rows(named=True)
    return ["<br>".join(f"{key} {value}" for key, value in rows[index].items()) for index in np.flatnonzero(kept)]


def against(unseen: Unseen, pair: tuple[Array, Array], *, title: str, unit: str, colour: pl.Expr) -> go.Figure:
    """A `pair` of (predicted, measured) on logarithmic axes, with the diagonal and PENALISED_RATIO times it."""
    predicted, measured = pair
    kept = np.isfinite(predicted) & np.isfinite(measured)
    groups = unseen.rows.table.select(colour.alias("group"))["group"].to_numpy()[kept]
    x, y, labels = predicted[kept], measured[kept], np.array(_labels(unseen, kept))
    figure = go.Figure()
    for group in sorted(set(groups)):
        mine = groups == group
        figure.add_scatter(
            x=x[mine], y=y[mine], mode="markers", name=str(group), text=labels[mine], marker={"size": 5, "opacity": 0.6}
        )
    ends = np.array([min(x.min(), y.min()), max(x.max(), y.max())])
    figure.add_scatter(x=ends, y=ends, mode="lines", name="as estimated", line={"color": "#444", "width": 1})
    if unseen.rows.recipe.is_bound and unit == "s":
        figure.add_scatter(
            x=ends,
            y=PENALISED_RATIO * ends,
            mode="lines",
            name=f"{PENALISED_RATIO} times",
            line={"color": "#444", "dash": "dot"},
        )
    figure.update_xaxes(type="log", title=f"estimated, {unit} (rows whose group the fit had not seen)")
    figure.update_yaxes(type="log", title=f"measured, {unit}")
    figure.update_layout(title=title, template="plotly_white", height=560)
    return figure


def residuals_by(unseen: Unseen, group: pl.Expr, title: str) -> go.Figure:
    """Measured over estimated step time by a group of rows, as boxes on a logarithmic axis."""
    ratio = unseen.rows.step_time_s / unseen.step_time_s
    kept = np.isfinite(ratio)
    names = unseen.rows.table.select(group.cast(pl.String).alias("group"))["group"].to_numpy()[kept]
    figure = go.Figure()
    for name in sorted(set(names), key=lambda text: (not text.isdigit(), int(text) if text.isdigit() else 0, text)):
        figure.add_box(y=ratio[kept][names == name], name=name, boxpoints=False, showlegend=False)
    figure.add_hline(y=1.0, line={"color": "#444", "width": 1})
    figure.update_yaxes(type="log", title="measured / estimated step time")
    figure.update_layout(title=title, template="plotly_white", height=420)
    return figure


def step_times(unseen: Unseen) -> tuple[Array, Array]:
    """(predicted, measured) step times."""
    return unseen.step_time_s, unseen.rows.step_time_s


def plots(found: dict[str, Unseen], playbook: str) -> list[go.Figure]:
    """Every plot of the report."""
    play = found[playbook]
    figures = [
        against(play, step_times(play), title="Playbook: step time", unit="s", colour=strategy()),
        against(
            play,
            (play.mem_bytes / 2**30, play.rows.mem_bytes / 2**30),
            title="Playbook: peak memory",
            unit="GiB",
            colour=strategy(),
        ),
        residuals_by(play, pl.col("num_nodes"), "Playbook: step time by nodes"),
        residuals_by(play, strategy(), "Playbook: step time by strategy"),
        residuals_by(play, pl.col("model"), "Playbook: step time by model"),
    ]
    for name, unseen in found.items():
        if name != playbook:
            figures.append(
                against(unseen, step_times(unseen), title=f"{name}: step time", unit="s", colour=pl.col("model"))
            )
    return figures


def write_report(path: Path, parts: list[tuple[str, pl.DataFrame | str]], figures: list[go.Figure]) -> None:
    """One file, readable without a network: titles with tables or paragraphs, then the plots."""
    body = []
    for title, part in parts:
        text = table_html(part) if isinstance(part, pl.DataFrame) else f"<p>{escape(part)}</p>"
        body.append(f"<h2>{escape(title)}</h2>{text}")
    for index, figure in enumerate(figures):
        body.append(figure.to_html(full_html=False, include_plotlyjs=index == 0))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PAGE.format(body="\n".join(body)), encoding="utf-8")
