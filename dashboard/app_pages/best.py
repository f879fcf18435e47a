"""Best configurations."""

from __future__ import annotations

from dashboard import shell, widgets

view = shell.begin()
widgets.head("Best configurations", "**Under construction.**", origins=("published",))
