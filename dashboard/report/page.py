"""A report as one HTML file that loads nothing: plotly once, charts as data, everything else escaped text."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import polars as pl
from plotly.offline import get_plotlyjs

from sweepscope.dashboard.format import columns, numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.theme import Theme, template
from sweepscope.dashboard.report.section import Listing, Picture, Section
from sweepscope.dashboard.widgets.basic import badge, rich

# Nothing from elsewhere, whatever a name in a log says. plotly compiles code for charts of many points.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data: blob:; "
    "font-src data:"
)
_STYLE = (Path(__file__).parents[1] / "assets" / "report.css").read_text()
_WHOLE_CHARS = 44  # of a text that a table does not break
_COLORS = names("ink page mute axis accent rule surface soft")
_DRAW = """for (const [id, figure] of Object.entries(JSON.parse(document.getElementById("figures").textContent)))
  Plotly.newPlot(id, figure.data, figure.layout, {displaylogo: false, responsive: true, doubleClick: "reset",
    modeBarButtons: [["toImage"]], toImageButtonOptions: {filename: id, scale: 2}});"""


def page(title: str, about: str, parts: Sequence[Section], theme: Theme) -> str:
    """The whole file. `about` is the line on the store below the title."""
    drawn = named_pictures(parts)
    figures = {name: figure_data(picture, theme) for name, picture in drawn.items()}
    links = " · ".join(f'<a href="#{part.key}">{rich(part.title)}</a>' for part in parts)
    body = "".join(map(section_html, parts))
    data = script_json(figures)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width"><style>{style(theme)}</style></head><body>'
        f'<h1>{html.escape(title)}</h1><p class="meta">{rich(about)}</p><nav aria-label="Sections">{links}</nav>'
        f"<main>{body}</main>"
        + (
            f"<script>{get_plotlyjs()}</script>"
            f'<script type="application/json" id="figures">{data}</script><script>{_DRAW}</script>'
            if figures
            else ""
        )
        + "</body></html>\n"
    )


def named_pictures(parts: Sequence[Section]) -> dict[str, Picture]:
    """Pictures by the name of their element, which is that of the file they are saved as, too."""
    return {
        f"sweepscope-{part.key}-{number}": picture
        for part in parts
        for number, picture in enumerate(part.pictures, start=1)
    }


def script_json(value: object) -> str:
    """JSON for a script element: "</" would end it, whatever text of a chart it stands in."""
    return json.dumps(value).replace("</", "<\\/")


def style(theme: Theme) -> str:
    """The style sheet with the theme's colours as variables."""
    return f":root{{{''.join(f'--{name}:{getattr(theme, name)};' for name in _COLORS)}}}{_STYLE}"


def figure_data(picture: Picture, theme: Theme) -> dict[str, object]:
    """The chart as data in the theme's template, with its title and conditions in it: a picture of it has to tell what
    it is.
    """
    figure = picture.draw()
    more = 28 + (16 if picture.conditions else 0)
    top = (figure.layout.margin.t or 8) + more
    title: dict[str, object] = {
        "text": numbers.plain(picture.title),
        "x": 0,
        "xanchor": "left",
        "font": {"size": 14},
        "y": 1,
        "yanchor": "top",
    }
    title["pad"] = {"t": 4}
    if picture.conditions:
        title["subtitle"] = {"text": numbers.plain(picture.conditions), "font": {"size": 11, "color": theme.mute}}
    figure.update_layout(template=template(theme), title=title, margin_t=top, paper_bgcolor=theme.page)
    if figure.layout.height:
        figure.update_layout(height=figure.layout.height + more)
    return dict(json.loads(figure.to_json()))


def section_html(part: Section) -> str:
    """One section: answer, figures, places of its charts, tables, notes and the SQL behind them."""
    badges = "".join(badge(origin) for origin in part.origins).replace("ss-badge", "badge")
    figures = "".join(
        f"<div>{rich(label)}<b>{rich(value)}</b><small>{rich(remark)}</small></div>"
        for label, value, remark in part.figures
    )
    pictures = "".join(
        f'<figure><div id="sweepscope-{part.key}-{number}" role="img" aria-label="{html.escape(picture.alt)}"></div>'
        f"<figcaption>{rich(picture.alt)}</figcaption></figure>"
        for number, picture in enumerate(part.pictures, start=1)
    )
    queries = "".join(
        f"<h3>{rich(name)}</h3><pre>{html.escape(query.runnable())}</pre>" for name, query in part.queries.items()
    )
    return (
        f'<section id="{part.key}"><h2>{rich(part.title)}</h2><p class="answer">{rich(part.answer)}</p>'
        f'<p class="meta">{badges}{rich(part.meta)}</p>'
        + (f'<div class="figures">{figures}</div>' if figures else "")
        + pictures
        + "".join(map(_listing, part.listings))
        + "".join(f'<p class="note">{rich(note)}</p>' for note in part.notes)
        + (f"<details><summary>SQL of these figures</summary>{queries}</details>" if queries else "")
        + "</section>"
    )


def _listing(listing: Listing) -> str:
    """A table in shown units. Columns that hold nothing are left out, rows beyond the limit counted."""
    frame = listing.frame
    kept = [name for name in listing.columns if name in frame.columns and frame[name].count()]
    if not kept:
        return ""
    numeric = {name for name in kept if frame.schema[name].is_numeric()}
    head = "".join(
        f'<th scope="col"{_number_class(name in numeric)}>{rich(columns.heading(name))}</th>' for name in kept
    )
    linked, urls = listing.links or ("", [None] * frame.height)
    rows = "".join(
        f"<tr>{''.join(_cell(name, row[name], name in numeric, url if name == linked else None) for name in kept)}</tr>"
        for row, url in zip(frame.head(listing.most).iter_rows(named=True), urls, strict=False)
    )
    left = frame.height - listing.most
    more = f'<p class="note">{numbers.count(left, "further row")} not listed.</p>' if left > 0 else ""
    return (
        f'<h3>{rich(listing.title)}</h3><div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{more}"
    )


def _number_class(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _cell(name: str, value: object, is_number: bool, url: str | None) -> str:
    text = shown_value(name, value)
    inner = html.escape(text, quote=False)
    inner = f'<a href="{html.escape(url)}">{inner}</a>' if url else inner
    kind = _number_class(is_number) or (' class="whole"' if len(text) <= _WHOLE_CHARS else "")
    return f"<td{kind}>{inner}</td>"


def shown_value(name: str, value: object) -> str:
    """The value of a column as a table shows it, in the unit of its heading."""
    if value is None:
        return numbers.MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, pl.Series):
        return ", ".join(map(str, value))
    if isinstance(value, datetime):
        return numbers.moment(value)
    how = columns.shown(name)
    if isinstance(value, (int, float)):
        return numbers.number(value * how.factor, how.decimals) if how else numbers.significant(value)
    return str(value)
