"""A page of a static site as HTML. It loads plotly and the style sheet from files beside it, and nothing else."""

from __future__ import annotations

import html
from collections.abc import Sequence

from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.report.page import figure_data, named_pictures, script_json, section_html
from sweepscope.dashboard.report.site import SitePage
from sweepscope.dashboard.widgets.basic import rich

STYLE, PLOTLY, DRAW = "style.css", "plotly.min.js", "draw.js"

# "file:" beside 'self': a page that was opened from a disk has no origin of its own. plotly compiles code for charts of
# many points, and styles what it draws.
_POLICY = (
    "default-src 'none'; style-src 'self' file: 'unsafe-inline'; script-src 'self' file: 'unsafe-eval'; "
    "img-src data: blob:; font-src data:"
)
DRAW_TEXT = """const figures = JSON.parse(document.getElementById("figures").textContent);
const icons = {png: "camera", svg: "disk"};
const save = (format) => ({name: `Save as ${format.toUpperCase()}`, icon: Plotly.Icons[icons[format]],
  click: (chart) => Plotly.downloadImage(chart, {format, filename: chart.id, scale: format === "svg" ? 1 : 2,
    width: chart.offsetWidth, height: chart.offsetHeight})});
for (const [id, figure] of Object.entries(figures))
  Plotly.newPlot(id, figure.data, figure.layout, {displaylogo: false, responsive: true, doubleClick: "reset",
    modeBarButtons: [[save("png"), save("svg")]]});
"""


def page_html(
    page: SitePage, about: str, menu: Sequence[tuple[str, str]], sites: Sequence[tuple[str, str]], theme: Theme
) -> str:
    """One file of a site.

    Args:
        page: its sections.
        about: the line on the store.
        menu: file and title of the pages beside it.
        sites: address and name of the sites of other origins.
        theme: colours of its charts.
    """
    figures = {name: figure_data(picture, theme) for name, picture in named_pictures(page.parts).items()}
    title = page.title or (page.parts[0].title if page.parts else "sweepscope")
    links = " · ".join(_link(file, name, is_current=file == page.file) for file, name in menu)
    other = "".join(f" · {_link(url, name)}" for url, name in sites)
    scripts = (
        f'<script type="application/json" id="figures">{script_json(figures)}</script>'
        f'<script src="../{PLOTLY}"></script><script src="../{DRAW}"></script>'
        if figures
        else ""
    )
    body = "".join(map(section_html, page.parts))
    if page.parts and page.parts[0].title == title:  # said once
        body = body.replace(f"<h2>{rich(title)}</h2>", "", 1)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)} · sweepscope</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f'<link rel="stylesheet" href="../{STYLE}"></head><body>'
        f'<nav aria-label="Pages">{links}{other}</nav><h1>{html.escape(title)}</h1><p class="meta">{rich(about)}</p>'
        f"<main>{body}</main>{scripts}</body></html>\n"
    )


def start_html(first: str) -> str:
    """The file that leads from the folder's own address to the first page."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>sweepscope</title>'
        f'<meta http-equiv="refresh" content="0; url={html.escape(first)}"></head>'
        f'<body><p><a href="{html.escape(first)}">sweepscope</a></p></body></html>\n'
    )


def _link(url: str, text: str, *, is_current: bool = False) -> str:
    return f'<a href="{html.escape(url)}"{" aria-current=page" if is_current else ""}>{rich(text)}</a>'
