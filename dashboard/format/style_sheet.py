"""The style sheet of all pages, with the themes' colours as CSS variables."""

from __future__ import annotations

from pathlib import Path

from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.theme import DARK, LIGHT, Theme

_SHEET = Path(__file__).parents[1] / "assets" / "style.css"


def colors(theme: Theme) -> str:
    """The rule that gives the sheet a theme's colours."""
    variables = names("page ink soft mute axis rule surface accent cell hatch completed warning failed")
    declared = "".join(f"--ss-{name}:{getattr(theme, name)};" for name in variables)
    return f":root{{{declared}}}"


def sheet() -> str:
    """The rules of all pages, in the colours of the theme that the reader's system prefers."""
    return f"{colors(LIGHT)}@media (prefers-color-scheme:dark){{{colors(DARK)}}}{_SHEET.read_text(encoding='utf-8')}"
