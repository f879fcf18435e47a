"""One row per COLL line, in place of the sums of `collectives`: which rank called what, in which order."""

from __future__ import annotations

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl import codes
from sweepscope.pipeline.nccl.lines import call_tokens, collectives
from sweepscope.pipeline.nccl.lines.block import Block, Part, block_of
from sweepscope.pipeline.nccl.lines.info_lines import InfoLines
from sweepscope.pipeline.nccl.lines.irregular_lines import info_row
from sweepscope.pipeline.nccl.lines.messages import clean, messages
from sweepscope.pipeline.nccl.lines.regular_lines import regular_lines

CALLS = pl.Schema(
    {
        "source_path": pl.String,
        "line_no": pl.Int64,
        "host": pl.String,
        "pid": pl.Int64,
        "tid": pl.Int64,
        "comm_pointer": pl.String,
        "nranks": pl.Int64,
        "op": pl.String,
        "op_count": pl.Int64,
        "element_count": pl.Int64,
        "datatype": pl.String,
        "reduction": pl.String,
        "root": pl.Int64,
        "send_buffer": pl.String,
        "recv_buffer": pl.String,
        "stream": pl.String,
    }
)
"""One row per COLL line. Names are those of the tables `nccl_*`: `comm_pointer`, `host` and `pid` lead to `nccl_ranks`.

`element_count` is as printed (see `collective_rows`); `reduction` and `root` are NULL where the operation has none.
"""

_CALL = rf"^{call_tokens.CALL}(?: stream (?P<stream>[!-~]+))?"
_LINES = 20_000
"""Lines read together: while it is parsed, a row is several times as large as its line."""


def raw_calls(part: Part, path: str) -> pl.DataFrame:
    """The calls in a block of whole lines of the file at `path`, in order, as CALLS."""
    block = block_of([part])
    lines = np.flatnonzero(block.text.str.contains(collectives.WORD, literal=True).to_numpy())
    pieces = [_calls(block, lines[at : at + _LINES]) for at in range(0, len(lines), _LINES)]
    return pl.concat([CALLS.to_frame(), *pieces]).with_columns(source_path=pl.lit(path))


def _calls(block: Block, positions: np.ndarray) -> pl.DataFrame:
    regular, others = regular_lines(block, positions, repeats=False)
    irregular = (
        info_row(message, source, line_no, 0)
        for source, line_no, text in block.lines(others)
        for message in messages(clean(text))
    )
    lines = InfoLines.joined([regular, InfoLines.of_messages(irregular)]).with_texts()
    found = lines.with_columns(pl.col("text").str.extract_groups(_CALL)).unnest("text").drop_nulls("comm")
    typed = found.sort("line_no", maintain_order=True).with_columns(
        pl.col("datatype", "redop", "root", "nranks").cast(pl.Int64),
        source_path=pl.lit(None, pl.String),
        element_count=pl.col("count").cast(pl.Int64),
        op_count=pl.col("opcount").str.to_integer(base=16),
    )
    renamed = {"comm": "comm_pointer", "sendbuff": "send_buffer", "recvbuff": "recv_buffer"}
    return codes.with_names(typed).rename(renamed).select(CALLS.names()).cast(CALLS)
