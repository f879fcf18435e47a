"""What a batch of files says about the network, gathered beside the training logs: the shell around `pipeline.nccl`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import polars as pl

from pipeline.nccl.facts import Facts
from pipeline.nccl.flight import records
from pipeline.nccl.names import dump_rank
from pipeline.nccl.scan import scan
from pipeline.nccl.tables import has_content, nccl_tables
from pipeline.parse import engine
from pipeline.parse.protocol import Facts as RunFacts

_MERGE_AT = 64
"""Blocks of a file whose facts are held one by one; then they are put together, so that memory stays bounded."""


class NcclReader:
    """Collects the facts of every file of a batch, block by block."""

    def __init__(self) -> None:
        self._facts: dict[int, list[Facts]] = defaultdict(list)
        self._dumps: dict[int, pl.DataFrame] = {}

    def add(self, source: int, data: bytes, first_line: int) -> None:
        """A block of whole lines of a file."""
        facts = scan(data, first_line)
        if facts:
            blocks = self._facts[source]
            blocks.append(facts)
            if len(blocks) >= _MERGE_AT:
                self._facts[source] = [Facts.merge(blocks).compact()]

    def add_dump(self, source: int, path: str, data: bytes) -> int:
        """A dump of the flight recorder; returns how many of its records are none. Raises ValueError for no dump."""
        self._dumps[source], broken = records(data, rank=dump_rank(path))
        return broken

    def discard(self, source: int) -> None:
        """Forget a file that turned out to be unreadable."""
        self._facts.pop(source, None)

    def with_kinds(self, sources: pl.DataFrame, said: engine.Extract) -> pl.DataFrame:
        """`sources` in which logs that hold NCCL output and no training run are of kind `nccl`.

        Such are files that no dialect recognises and that give no setting and no step, but hold nccl-tests tables, or
        consist of NCCL lines for the greater part. A line of PyTorch's watchdog is the end of a training run.
        """
        ends = dict(said.ends.group_by("source").agg(pl.col("last_line").max()).iter_rows())
        telling = {*said.dialect_of, *said.facts.steps["source"], *said.facts.settings["source"]}
        only = [
            source
            for source, blocks in self._facts.items()
            if source not in telling and _is_only_nccl(Facts.merge(blocks), ends.get(source, 0))
        ]
        is_only = pl.col("source").is_in(only) & (pl.col("kind") == "log")
        return sources.with_columns(kind=pl.when(is_only).then(pl.lit("nccl")).otherwise("kind"))

    def tables(self, sources: pl.DataFrame, said: RunFacts) -> dict[str, pl.DataFrame]:
        """Rows of every NCCL table. `said`: the settings among them may tell the number of ranks."""
        sizes = said.settings.filter(pl.col("name") == "num_gpus").select(
            "source", pl.col("value").cast(pl.Int64, strict=False)
        )
        facts = {source: Facts.merge(blocks) for source, blocks in self._facts.items()}
        return nccl_tables(sources, facts, num_ranks=dict(sizes.drop_nulls().iter_rows()), dumps=self._dumps)


def _is_only_nccl(facts: Facts, last_line: int) -> bool:
    if not has_content(facts) or not _of_kinds(facts, ("timeout", "status", "dump", "stuck")).is_empty():
        return False
    lines = facts["tally"].filter(pl.col("name").is_in(["lines", "summed"]))["lines"].sum()
    return not facts["bench_row"].is_empty() or not facts["bench_mark"].is_empty() or 2 * lines >= last_line


def _of_kinds(facts: Facts, kinds: Iterable[str]) -> pl.DataFrame:
    return facts["watchdog"].filter(pl.col("kind").is_in(list(kinds)))
