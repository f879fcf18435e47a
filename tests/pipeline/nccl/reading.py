"""Text to NCCL tables, for tests: through the real map and fold, cut into blocks anywhere."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
import pytest

from sweepscope.pipeline.nccl.facts import Facts
from sweepscope.pipeline.nccl.lines import scan
from sweepscope.pipeline.nccl.lines.block import Block, Part
from sweepscope.pipeline.nccl.lines.compact import compact
from sweepscope.pipeline.nccl.lines.info_lines import InfoLines
from sweepscope.pipeline.nccl.lines.regular_lines import regular_lines
from sweepscope.pipeline.nccl.lines.scan import scan_parts
from sweepscope.pipeline.nccl.tables.nccl_tables import nccl_tables
from sweepscope.pipeline.text.lines import blocks
from sweepscope.schemas.registry import NCCL_TABLES

Tables = dict[str, pl.DataFrame]


def facts_of(text: str | bytes, *, source: int = 0, block_bytes: int = 1 << 24) -> Facts:
    """Facts of one file that comes in chunks of that size."""
    data = text.encode() if isinstance(text, str) else text
    chunks = [data[at : at + block_bytes] for at in range(0, len(data), block_bytes)]
    found = Facts.merge(scan_parts([Part(source, block, first)]) for block, first, _ in blocks(chunks))
    return compact(found) if len(chunks) > 1 else found  # as the reader of long files does; it must change nothing


def tables_of(
    files: Mapping[str, str | bytes] | str | bytes, *, num_ranks: int | None = None, block_bytes: int = 1 << 24
) -> Tables:
    """Every NCCL table of some files of one unit, empty ones included."""
    named = files if isinstance(files, Mapping) else {"train.log": files}
    facts = [facts_of(text, source=at, block_bytes=block_bytes) for at, text in enumerate(named.values())]
    return tables_from(Facts.merge(facts), list(named), num_ranks=num_ranks)


def take_all_for_irregular(patch: pytest.MonkeyPatch) -> None:
    """Have the messages of every line found one line at a time, also of regular INFO lines."""

    def none(block: Block, positions: np.ndarray) -> tuple[InfoLines, np.ndarray]:
        return regular_lines(block, positions[:0])[0], positions

    patch.setattr(scan, "regular_lines", none)


def tables_from(facts: Facts, names: list[str], *, num_ranks: int | None = None) -> Tables:
    """Every NCCL table of the files of those names, of one unit."""
    count = len(names)
    frame = pl.DataFrame(
        {
            "source": list(range(count)),
            "path": names,
            "unit": ["unit"] * count,
            "run_dir": ["/run"] * count,
            "sweep": ["sweep"] * count,
            "origin": ["measured"] * count,
        }
    )
    sizes = dict.fromkeys(range(count), num_ranks) if num_ranks else {}
    found = nccl_tables(frame, facts, num_ranks=sizes)  # type: ignore[arg-type]  # None is left out above
    return {table.name: found.get(table.name, table.empty()) for table in NCCL_TABLES}


def row_of(frame: pl.DataFrame) -> dict[str, object]:
    """The one row of a frame, without its NULLs."""
    assert frame.height == 1, frame
    return {name: value for name, value in frame.row(0, named=True).items() if value is not None}
