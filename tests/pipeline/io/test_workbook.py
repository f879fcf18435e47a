"""Cells of workbooks as text, and files that are none."""

from __future__ import annotations

import io
import zipfile

import pytest

from sweepscope.pipeline.errors import LimitError
from sweepscope.pipeline.io.workbook import is_workbook, sheets_of
from sweepscope.schemas import limits
from tests.workbooks import workbook


def test_cells_of_all_sheets_are_texts_at_their_places() -> None:
    data = workbook({"a": [["Sweep"], [], ["tp", "tok/s", "ok"], [2, 9100.5, True], [4, "OOM"]], "b": [["x & y", 1]]})
    assert is_workbook(data)
    first, second = sheets_of(data)
    assert first == [["Sweep", "", ""], ["", "", ""], ["tp", "tok/s", "ok"], ["2", "9100.5", "true"], ["4", "OOM", ""]]
    assert second == [["x & y", "1"]]


def test_a_sheet_without_cells_has_no_rows() -> None:
    assert [*sheets_of(workbook({"empty": []}))] == [[]]


def test_an_archive_without_a_workbook_is_refused() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("notes.txt", "no workbook")
    with pytest.raises(ValueError, match="no workbook"):
        list(sheets_of(data.getvalue()))


def test_a_cut_workbook_is_refused() -> None:
    with pytest.raises(ValueError, match="no workbook"):
        list(sheets_of(workbook({"a": [["tp"]]})[:-40]))


def test_a_workbook_that_unpacks_to_too_much_is_refused() -> None:
    data = io.BytesIO(workbook({"a": [["tp"]]}))
    with zipfile.ZipFile(data, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/large", b"\0" * (limits.WHOLE_BYTES + 1))
    with pytest.raises(LimitError, match="unpacks to more"):
        list(sheets_of(data.getvalue()))
