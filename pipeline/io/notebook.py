"""What Jupyter notebooks have printed, as the lines of a log (nbformat 4).

Of each cell with outputs: its code, for the arguments in it, then what it printed, results as text, tables (the
progress of transformers' Trainer is one) as a JSON object per row, and the traceback of an error. Cells without outputs
were not run, or printed nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

_BEGIN = re.compile(rb'\s*\{\s*"(?:cells|metadata|nbformat|nbformat_minor)"\s*:')
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?")


def is_notebook(head: bytes) -> bool:
    """Whether a text begins as a notebook does, whatever comes first in it.

    >>> is_notebook(b'{\\n "cells": ['), is_notebook(b'{"step": 1}')
    (True, False)
    """
    return _BEGIN.match(head) is not None


def lines_of_notebook(text: bytes) -> bytes:
    """The lines of a notebook; the text itself where it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list) or "nbformat" not in found:
        return text
    lines = (line for cell in found["cells"] if isinstance(cell, dict) for line in _lines_of_cell(cell))
    return "".join(f"{line}\n" for line in lines).encode("utf-8", errors="replace")


def _lines_of_cell(cell: Mapping[str, Any]) -> Iterator[str]:
    outputs = [output for output in cell.get("outputs") or () if isinstance(output, dict)]
    if cell.get("cell_type") != "code" or not outputs:
        return
    yield from _text(cell.get("source")).split("\n")
    for output in outputs:
        yield from _lines_of_output(output)


def _lines_of_output(output: Mapping[str, Any]) -> Iterator[str]:
    kind, data = output.get("output_type"), output.get("data")
    if kind == "stream":
        yield from _text(output.get("text")).removesuffix("\n").split("\n")
    elif kind == "error":
        traceback = output.get("traceback")
        parts = traceback if isinstance(traceback, list) else []
        yield from (line for part in parts if isinstance(part, str) for line in part.split("\n"))
    elif isinstance(data, dict):
        page = _text(data.get("text/html"))
        yield from _lines_of_page(page) if "<table" in page else _text(data.get("text/plain")).split("\n")


def _text(found: object) -> str:
    """A text that is kept as one, or as a list of its lines."""
    if isinstance(found, Sequence) and not isinstance(found, str):
        return "".join(part for part in found if isinstance(part, str))
    return found if isinstance(found, str) else ""


def _lines_of_page(page: str) -> Iterator[str]:
    """Texts of a page outside tables, and the rows of its tables below the names of their columns."""
    parser = _Page()
    parser.feed(page)
    parser.close()
    yield from (text for text in parser.texts if text)
    names = next((row for row in parser.rows if row), [])
    for row in parser.rows[1:]:
        if len(row) == len(names):
            yield json.dumps({name: _value(cell) for name, cell in zip(names, row, strict=True) if name})


def _value(cell: str) -> object:
    """A cell as a number where it is one.

    >>> _value("1,200"), _value("2.50"), _value("1e-05"), _value("No log")
    (1200, 2.5, 1e-05, 'No log')
    """
    if not _NUMBER.fullmatch(cell):
        return cell
    plain = cell.replace(",", "")
    return int(plain) if plain.lstrip("-").isdigit() else float(plain)


class _Page(HTMLParser):
    """Texts and rows of cells of an HTML page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.rows: list[list[str]] = []
        self._is_cell = False

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:  # noqa: ARG002 - HTMLParser's own signature
        """A row, or a cell, begins."""
        if tag == "tr":
            self.rows.append([])
        self._is_cell = tag in ("td", "th") or (self._is_cell and tag not in ("tr", "table"))
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        """A cell ends."""
        self._is_cell = self._is_cell and tag not in ("td", "th", "tr", "table")

    def handle_data(self, data: str) -> None:
        """Text of a cell, or between tables."""
        text = " ".join(data.split())
        if self._is_cell and self.rows and self.rows[-1]:
            self.rows[-1][-1] += text
        else:
            self.texts.append(text)
