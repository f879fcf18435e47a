"""Scaling."""

from __future__ import annotations

from dashboard import shell, widgets

view = shell.begin()
widgets.head("Scaling", "**Under construction.**", origins=("published",))
