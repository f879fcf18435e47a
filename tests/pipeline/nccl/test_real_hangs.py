"""Watchdog hangs of real jobs, against facts that were taken from the logs by other means."""

from __future__ import annotations

import csv
import re

import pytest

from tests import paths
from tests.pipeline.nccl.reading import tables_of

CORPUS = paths.CORPUS / "nccl"
_FACT = re.compile(
    r"(?P<op>\w+) seq=(?P<seq>\d+) in=(?P<nin>\d+) out=\d+ timeout_ms=(?P<ms>\d+) ranks=(?P<ranks>[\d,]+)"
)


def facts() -> list[dict[str, str]]:
    manifest = CORPUS / "manifest.csv"
    if not manifest.exists():
        return []
    with manifest.open(newline="") as lines:
        return [row for row in csv.DictReader(lines) if row["hang"]]


HANGS = facts()


@pytest.mark.skipif(not HANGS, reason=paths.NO_CORPUS)
def test_each_hang_gives_operation_sequence_and_ranks() -> None:
    assert len(HANGS) >= 7
    for fact in HANGS:
        rows = tables_of((CORPUS / fact["path"]).read_bytes())["nccl_hangs"].to_dicts()
        wanted = {
            (hit["op"], int(hit["seq"]), int(hit["nin"]), int(hit["ms"]), hit["ranks"])
            for hit in _FACT.finditer(fact["hang"])
        }
        found = {(row["op"], row["seq"], row["numel_in"], row["timeout_ms"], row["ranks_reporting"]) for row in rows}
        assert found == wanted, fact["path"]
        assert {row["ranks_silent"] or "" for row in rows} == {fact["hang_silent_ranks"]}, fact["path"]
        assert all(row["suspect"] or row["suspect_reason"].startswith("not determinable") for row in rows), fact["path"]
