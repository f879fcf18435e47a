"""The sentences of Data health on files that changed after they were read."""

from __future__ import annotations

from sweepscope.dashboard.text import health
from sweepscope.schemas.vocab import FILE_STATUS, REJECT_REASON_KEPT, REJECT_REASON_LEFT_OUT

SUMMARY = {
    "files": 9,
    "parsed": 4,
    "skipped": 1,
    "rejected": 0,
    "lines_rejected": 0,
    "copies": 1,
    "kept": 2,
    "failed": 1,
}


def test_copies_and_kept_rows_are_no_unread_files() -> None:
    text = health.answer(SUMMARY).replace("\xa0", " ")
    assert text.startswith("**4 of 5 files were read to their end.**")
    assert "1 more is a copy of another, which counts." in text
    assert "Rows of 2 files that changed or went after they were read are kept." in text
    assert "1 file could not be read again, so that earlier rows stay" in text


def test_values_that_were_kept_are_not_called_left_out() -> None:
    kept = health.reject_remedy(f"{REJECT_REASON_KEPT}: more than the peak of the accelerator", "runs")
    assert "counts with these values" in kept
    assert "stays empty" in health.reject_remedy(f"{REJECT_REASON_LEFT_OUT}: it does not fit", "runs")
    assert "is not in runs" in health.reject_remedy("must be one of", "runs")


def test_every_status_but_parsed_has_advice() -> None:
    rows = {status: {"status": status, "lines_rejected": 0} for status in FILE_STATUS}
    assert {status for status, row in rows.items() if not health.file_remedy(row)} == {"parsed"}
