"""NCCL facts of a batch of files, collected while its training logs are read: the shell around `pipeline.nccl`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import polars as pl

from sweepscope.pipeline.io.spill import stretches
from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.facts import Facts as RunFacts
from sweepscope.pipeline.nccl.facts import Facts
from sweepscope.pipeline.nccl.flight_recorder.dump import records
from sweepscope.pipeline.nccl.lines.block import Block, Part
from sweepscope.pipeline.nccl.lines.compact import compact
from sweepscope.pipeline.nccl.lines.scan import scan_blocks
from sweepscope.pipeline.nccl.lines.selection import select_lines, select_parts
from sweepscope.pipeline.nccl.names import dump_rank
from sweepscope.pipeline.nccl.tables.nccl_tables import nccl_tables, with_content
from sweepscope.pipeline.text.lines import count
from sweepscope.pipeline.text.secret_columns import hide_frame
from sweepscope.schemas.limits import BLOCK_LINES

_MERGE_AT = 16
"""Facts of so many scans are kept apart; then they are merged, so that memory stays bounded."""

_SCAN_BYTES = 8 << 20
"""Blocks of many small files are scanned together up to this size."""

_READ_BYTES = 16 << 20
"""Lines with NCCL content are read together from this size on: a pass has a price, however few they are."""


class Scanner(Protocol):
    """Scans blocks. Their facts come in the order of the blocks, at once or later."""

    def submit(self, parts: Sequence[Part]) -> Iterable[Facts]: ...

    def drain(self) -> Iterable[Facts]: ...


class _LocalScanner:
    """Scans in this process. Lines with NCCL content wait until there are enough of them for a pass, and facts of calls
    wait with them: they are merged with those of their communicators."""

    def __init__(self) -> None:
        self._facts: list[Facts] = []
        self._blocks: list[Block] = []
        self._bytes = 0

    def submit(self, parts: Sequence[Part]) -> Iterable[Facts]:
        return self.add(*select_parts(parts))

    def add(self, calls: Facts, blocks: Sequence[Block]) -> Iterable[Facts]:
        self._facts.append(calls)
        self._blocks += blocks
        self._bytes += sum(block.text_bytes for block in blocks)
        return self.drain() if self._bytes >= _READ_BYTES or len(self._facts) >= _MERGE_AT else ()

    def drain(self) -> Iterable[Facts]:
        facts, blocks = self._facts, self._blocks
        self._facts, self._blocks, self._bytes = [], [], 0
        return (Facts.merge([*facts, scan_blocks(blocks)]),) if facts else ()


class NcclCollector:
    """Collects the facts of every file of a batch, block by block."""

    def __init__(self, scanner: Scanner | None = None) -> None:
        self._local = _LocalScanner()
        self._scanner = scanner or self._local
        self._facts: list[Facts] = []
        self._pending: list[Part] = []
        self._pending_bytes = self._pending_lines = 0
        self._discarded: set[int] = set()
        self._dumps: dict[int, pl.DataFrame] = {}

    def add(self, source: int, data: bytes, first_line: int) -> None:
        """Add a block of whole lines of a file."""
        self._pending.append(Part(source, data, first_line))
        self._pending_bytes += len(data)
        self._pending_lines += count(data)
        if self._pending_bytes >= _SCAN_BYTES or self._pending_lines >= BLOCK_LINES:
            self._flush()

    def add_lines(self, parts: Sequence[tuple[int, bytes, int]], lines: pl.DataFrame, counts: np.ndarray) -> None:
        """Add blocks of whole lines of any files, and `split_parts` of them; most have no facts."""
        for facts in self._local.add(*select_lines([Part(*part) for part in parts], lines, counts)):
            self.add_facts(facts)

    def add_facts(self, facts: Facts) -> None:
        """Add the facts of a block."""
        if facts:
            self._facts.append(Facts({kind: hide_frame(frame) for kind, frame in facts.frames.items()}))
            if len(self._facts) >= _MERGE_AT:
                self._facts = [compact(Facts.merge(self._facts))]

    def add_dump(self, source: int, path: str, data: bytes) -> int:
        """Add a dump of the flight recorder; the number of its broken records. Raises ValueError for another file."""
        self._dumps[source], broken = records(data, rank=dump_rank(path))
        return broken

    def frames(self, sources: Collection[int]) -> dict[int, dict[str, pl.DataFrame]]:
        """Facts of the given files so far, by source and kind, for their records."""
        found: dict[int, dict[str, pl.DataFrame]] = {source: {} for source in sources}
        for kind, frame in compact(self._merged().of(sources)).frames.items() if sources else ():
            for (source,), rows in frame.partition_by("source", as_dict=True, maintain_order=True).items():
                found[source][kind] = rows
        return found

    def restore(self, source: int, frames: Mapping[str, pl.DataFrame]) -> None:
        """Add the facts of the lines that an earlier ingest read."""
        of_file = {kind: frame.with_columns(source=pl.lit(source, pl.Int64)) for kind, frame in frames.items()}
        self.add_facts(Facts(of_file))

    def discard(self, source: int) -> None:
        """Drop a file that turned out to be unreadable."""
        self._discarded.add(source)
        self._dumps.pop(source, None)

    def with_kinds(self, sources: pl.DataFrame, extracted: extract.Extract) -> pl.DataFrame:
        """`sources` in which logs with NCCL output and without a training run are of kind `nccl`."""
        only = self.without_training(extracted)
        is_only = pl.col("source").is_in(list(only)) & (pl.col("kind") == "log")
        return sources.with_columns(kind=pl.when(is_only).then(pl.lit("nccl")).otherwise("kind"))

    def without_training(self, extracted: extract.Extract) -> set[int]:
        """Files that no dialect knows, without settings or steps, that have nccl-tests tables or mostly NCCL lines.

        A line of PyTorch's watchdog is the end of a training run.
        """
        facts = extracted.facts
        stepped = stretches(facts.steps["source"])["value"]
        training = {*extracted.dialect_of, *stepped, *facts.settings["source"].unique()}
        return _with_nothing_else(self._merged(), extracted.last_lines) - training

    def sources(self) -> set[int]:
        """Files with anything of NCCL."""
        return set(with_content(self._merged()))

    def tables(
        self, sources: pl.DataFrame, run_facts: RunFacts, *, bench_op: str | None = None
    ) -> dict[str, pl.DataFrame]:
        """Rows of every NCCL table by its name. The facts are given up.

        Args:
            sources: files of the batch.
            run_facts: facts of the training logs; their settings may have the number of ranks.
            bench_op: operation of benchmarks that do not print theirs.
        """
        sizes = run_facts.settings.filter(pl.col("name") == "num_gpus").select(
            "source", pl.col("value").cast(pl.Int64, strict=False)
        )
        num_ranks = dict(sizes.drop_nulls().iter_rows())
        release = self._release  # called in the argument list, so that no name here keeps the facts alive
        return nccl_tables(sources, release(), num_ranks=num_ranks, dumps=self._dumps, bench_operation=bench_op)

    def _flush(self) -> None:
        parts = [part for part in self._pending if part.source not in self._discarded]
        self._pending, self._pending_bytes, self._pending_lines = [], 0, 0
        for facts in self._scanner.submit(parts) if parts else ():
            self.add_facts(facts)

    def _release(self) -> Facts:
        """The facts of all files so far, without keeping them."""
        facts, self._facts = self._merged(), []
        return facts

    def _merged(self) -> Facts:
        """The facts of all files so far."""
        self._flush()
        for scanner in dict.fromkeys((self._scanner, self._local)):
            for facts in scanner.drain():
                self.add_facts(facts)
        if len(self._facts) > 1:
            self._facts = [Facts.merge(self._facts)]
        facts = self._facts[0] if self._facts else Facts({})
        return facts.without(self._discarded) if self._discarded else facts


def _with_nothing_else(facts: Facts, ends: pl.DataFrame) -> set[int]:
    """Files with tables of nccl-tests, or mostly NCCL lines."""
    hangs = facts["watchdog"].filter(pl.col("kind").is_in(["timeout", "status", "dump", "stuck"]))
    lines = (
        facts["tally"].filter(pl.col("name").is_in(["lines", "summed"])).group_by("source").agg(pl.col("lines").sum())
    )
    last = ends.group_by("source").agg(pl.col("last_line").max())
    most = lines.join(last, on="source", how="left").filter(2 * pl.col("lines") >= pl.col("last_line").fill_null(0))
    tables = {*facts["bench_row"]["source"], *facts["bench_mark"]["source"]}
    return (with_content(facts) & {*most["source"], *tables}) - {*hangs["source"]}
