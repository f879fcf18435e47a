"""Overview."""

from __future__ import annotations

from dashboard import shell, widgets

view = shell.begin()
widgets.head("Overview", "**Under construction.**", origins=("published",))
