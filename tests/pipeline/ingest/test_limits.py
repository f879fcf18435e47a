"""No file takes the batch with it: one that is cheap to write and expensive to read is rejected, or read up to a limit."""

from __future__ import annotations

import resource
import time

import pytest

from sweepscope.pipeline.io import meter
from sweepscope.schemas import limits
from tests.hostile_files import HOSTILE
from tests.pipeline.ingest_in_memory import batch_of, tables_of
from tests.pipeline.logs.runs.test_assemble import log

SIZE = 200_000
REASONS = (
    "the limit for",
    "times its size",
    "over 10,000",
    "that the header names",
    "nest too deep",
    "of 64 bits",
    "unfold to over",
    "that belong to nothing",
    "a bomb",
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits at a hundredth of what they are."""
    monkeypatch.setattr(meter, "_EVERY_S", 0.02)
    monkeypatch.setattr(limits, "FREE_SECONDS", 0.5)
    monkeypatch.setattr(limits, "FREE_MEMORY_BYTES", 8 << 20)
    monkeypatch.setattr(limits, "MEMORY_PER_BYTE", 10)
    monkeypatch.setattr(limits, "UNPACKED_FREE_BYTES", 1 << 20)
    monkeypatch.setattr(limits, "UNPACKED_RATIO", 10)
    monkeypatch.setattr(limits, "TABLE_CELLS_PER_BYTE", 1)


@pytest.mark.parametrize("what", HOSTILE)
def test_it_costs_little_and_says_why(what: str) -> None:
    name, content = HOSTILE[what]
    begin, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    batch = batch_of({name: content(SIZE), "other/train.log": log(1, 3)})
    assert time.process_time() - begin < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10
    ledger = {
        path.rsplit("/sweep/", 1)[-1]: (status, error)
        for path, status, error in batch.files.select("path", "status", "error").iter_rows()
    }
    status, error = ledger[name]
    assert ledger["other/train.log"] == ("parsed", None)
    if status == "parsed":  # up to the limit
        (reject,) = batch.rejects.filter(file=batch.files["path"][0]).rows(named=True)
        error = f"{reject['file']}: {reject['reason']}: {reject['raw']}"
    assert name in str(error)
    assert any(reason in str(error) for reason in REASONS), error


def test_a_file_over_the_limit_of_its_kind_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WHOLE_BYTES", 1 << 20)
    files = tables_of({"r/config.json": " " * (2 << 20), "r/log_1.out": log(1, 3)})["files"]
    assert files["status"].to_list() == ["rejected", "parsed"]
    assert str(files["error"][0]).endswith(
        "r/config.json: it is larger than 1 MiB, the limit for such a file. Split it."
    )
