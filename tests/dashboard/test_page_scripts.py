"""What holds for the script of every page."""

from __future__ import annotations

import ast
from pathlib import Path

from sweepscope import dashboard


def test_no_page_has_a_bare_string_below_its_docstring() -> None:
    """Streamlit draws it: a constant of a page is explained by a comment above it."""
    pages = sorted(Path(dashboard.__path__[0], "app_pages").glob("*.py"))
    assert pages
    bare = [
        f"{page.name}:{statement.lineno}"
        for page in pages
        for statement in ast.parse(page.read_text(encoding="utf-8")).body[1:]
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    ]
    assert bare == []
