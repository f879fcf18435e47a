"""How many lines look like step records and were not read as such: over a corpus of real logs, and over simulated ones.

Two counts. What a dialect takes for a step line and cannot parse goes to `rejects`. What no dialect takes for one, though
it names a step and a loss, would be dropped silently: LOOSE looks for such lines in any framework's words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.ingest.discover import discover
from sweepscope.pipeline.ingest.read_batch import Batch, read_batch
from sweepscope.pipeline.io.files import list_files
from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.simulate.generate import generate
from sweepscope.pipeline.simulate.render import render
from sweepscope.pipeline.text import lines
from tests.paths import NO_CORPUS
from tests.pipeline.ingest_in_memory import batch_of
from tests.pipeline.logs.test_corpus import _corpora

MOST = 0.005
LOOSE = (
    r"(?i)\b(?:iteration|iter|step|steps|global_step|batch)\b[\s:=\[]*(\d+).*"
    r"\b(?:lm[ _-]?)?loss\b['\"]?\s*[:=]?\s*-?(?:\d|nan|inf)"
)
_CORPORA = _corpora()


@dataclass(frozen=True)
class Shares:
    """Counts over the logs of a batch that a dialect reads."""

    records: int
    unparsed: int
    loose: int
    unseen: list[str]

    def __str__(self) -> str:
        return (
            f"{self.records:,} step lines, {self.unparsed} of them did not parse ({self.unparsed / self.records:.3%}); "
            f"{self.loose:,} lines look like one in any framework, {len(self.unseen)} of them were not taken for one "
            f"({len(self.unseen) / max(self.loose, 1):.3%})"
        )


def shares(batch: Batch, contents: Mapping[str, bytes]) -> Shares:
    """Shares of `batch`; `contents` holds the bytes of each of its paths."""
    steps = batch.facts.steps
    logs = batch.sources.filter((pl.col("kind") == "log") & pl.col("dialect").is_not_null())
    block = lines.split_many((source, contents[path], 1) for source, path in logs.select("source", "path").iter_rows())
    loose = cleaning.clean(block).filter(pl.col("text").str.contains(LOOSE))
    loose = loose.with_columns(step=pl.col("text").str.extract(LOOSE, 1).cast(pl.Int64, strict=False))
    # DeepSpeed's pipeline engine prints the step that the trainer prints, too: that one is read.
    unseen = loose.join(steps, on=["source", "line_no"], how="anti").join(steps, on=["source", "step"], how="anti")
    return Shares(
        records=steps.height,
        unparsed=steps["step"].null_count(),
        loose=loose.height,
        unseen=unseen["text"].str.slice(0, 200).to_list(),
    )


def is_read(found: Shares) -> bool:
    return found.unparsed < MOST * found.records and len(found.unseen) < MOST * found.loose


@pytest.mark.skipif(not _CORPORA, reason=NO_CORPUS)
@pytest.mark.parametrize("corpus", _CORPORA, ids=lambda path: path.name)
def test_of_real_logs(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    batch = read_batch(discover(list_files(str(corpus)), is_simulated=lambda _place: False))
    logs = batch.sources.filter(pl.col("kind") == "log")["path"].to_list()
    found = shares(batch, {path: Path(path).read_bytes() for path in logs})
    with capsys.disabled():
        print(f"\n{corpus}: {found}")  # noqa: T201
    assert found.records > 30
    assert is_read(found), found.unseen[:20]


def test_of_simulated_logs(capsys: pytest.CaptureFixture[str]) -> None:
    """A run that stops within a line leaves one that nobody could read; the others leave none."""
    runs = [run for run in generate(11, 60) if run.unfinished is None]
    files = {f"{run.path}/{name}": data for run in runs for name, data in render(run).items()}
    batch = batch_of(files)
    place = {path: files[path.split("/sweep/", 1)[1]] for path in batch.sources["path"]}
    found = shares(batch, place)
    with capsys.disabled():
        print(f"\n{len(runs)} simulated runs: {found}")  # noqa: T201
    assert found.records > 500
    assert (found.unparsed, found.unseen) == (0, [])


def test_a_line_that_no_dialect_takes_and_one_that_does_not_parse_are_counted() -> None:
    good = "[rank 0] Step: {}     | Loss: 10.9062 | Global batch size:   2.05K | Tokens/s:  199.02 | Tokens/s/GPU:   24.88 | Tokens:   2.05K | MFU:  0.01% | Memory usage:   1.75GB\n"
    log = good.format(1) + good.format(2) + good.format(3)[:40] + "\n" + "custom step=77 loss=2.5\n"
    batch = batch_of({"a.log": log})
    found = shares(batch, dict.fromkeys(batch.sources["path"], log.encode()))
    assert (found.records, found.unparsed, found.unseen) == (3, 1, ["custom step=77 loss=2.5"])
    assert not is_read(found)
