"""Lines of communicator initialisation (src/init.cc): start, complete, destroy, abort, timings, channels, nodes.

Each pattern names the columns of its facts.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.facts import PARTS, SCHEMAS, Notes
from sweepscope.pipeline.nccl.lines.info_lines import InfoLines

_STATES = {
    "Init START": "started",
    "Init COMPLETE": "complete",
    "COMPLETE": "complete",
    "Destroy COMPLETE": "destroyed",
    "Abort COMPLETE": "aborted",
}
# 2.29+ begins START with [Rank R]; 2.21+ names the call; a split's START has no blank before the dash. Old versions
# lack commId (until 2.15), busId (2.4) and the devices and the word Init (2.3), and splits lack commId from 2.24 on.
# RCCL adds words behind commId.
_INIT = (
    r"^(?:\[Rank [0-9]+\] )?(?:(?P<api>nccl[A-Za-z0-9_]+) )?comm (?P<comm>0x[0-9a-f]+) rank (?P<rank>[0-9]{1,9}) "
    r"nranks (?P<nranks>[0-9]{1,9})(?: cudaDev (?P<cuda_dev>-?[0-9]{1,9}))?(?: nvmlDev (?P<nvml_dev>-?[0-9]{1,9}))?"
    r"(?: busId (?P<bus_id>[0-9a-f]+))?(?P<more>.*?) ?- "
    r"(?P<state>Init START|(?:Init )?COMPLETE|Destroy COMPLETE|Abort COMPLETE)$"
)
_HASH = r" commId (0x[0-9a-f]+)"
# The count that distinguishes splits of one parent was renamed in 2.30.
_SPLIT = (
    r" parent (?P<parent>0x[0-9a-f]+)(?: (?:split|child)Count (?P<split_count>[0-9]{1,9}))? "
    r"color (?P<color>-?[0-9]{1,9})"
)
_TIMING = (
    r"^Init timings(?: - [A-Za-z0-9_]+)?: rank (?P<rank>[0-9]{1,9}) nranks (?P<nranks>[0-9]{1,9}) "
    r"total (?P<total>[0-9.]+) \((?P<parts>[^)]*)\)"
)
_PARTS = {name: rf"(?:^|, ){name} ([0-9.]+)(?:,|$)" for name in PARTS}
_SHAPE = (
    r"^comm (?P<comm>0x[0-9a-f]+) rank (?P<rank>[0-9]{1,9}) nRanks (?P<nranks>[0-9]{1,9}) "
    r"nNodes (?P<nnodes>[0-9]{1,9}) "
)
_CHANNELS = (
    r"^(?P<coll>[0-9]{1,9}) coll channels, (?:(?P<collnet>[0-9]{1,9}) collnet channels, )?"
    r"(?:(?P<nvls>[0-9]{1,9}) nvls channels, )?(?P<p2p>[0-9]{1,9}) p2p channels"
    r"(?:, (?P<per_peer>[0-9]{1,9}) p2p channels per peer)?"
)
_NETWORK = r"^Using network (?P<network>.+)$"
_KINDS = {"init": _INIT, "timing": _TIMING, "shape": _SHAPE, "channels": _CHANNELS, "network": _NETWORK}


def read(kind: str, lines: InfoLines, notes: Notes) -> np.ndarray:
    """Facts of one kind of `_KINDS`; returns a mask of the texts that were understood.

    `shape` is how many hosts a communicator spans, `network` what it may use between hosts, `channels` how many it has
    of each sort (NULL for one that a version does not print), and `timing`, which follows a COMPLETE line of the same
    thread, the seconds of each part.
    """
    texts = pl.LazyFrame({"text": lines.texts}).with_row_index("text_id")
    found = texts.with_columns(pl.col("text").str.extract_groups(_KINDS[kind]).alias("fields")).unnest("fields")
    found = found.filter(pl.col("rank" if "rank" in SCHEMAS[kind] else SCHEMAS[kind].names()[5]).is_not_null())
    if kind == "init":
        found = found.with_columns(
            pl.col("more").str.extract_groups(_SPLIT).alias("split"),
            pl.col("more").str.extract(_HASH).alias("comm_hash"),
            pl.col("state").replace_strict(_STATES, return_dtype=pl.String),
        ).unnest("split")
    if kind == "timing":
        found = found.with_columns(**{name: pl.col("parts").str.extract(part) for name, part in _PARTS.items()})
    fields = found.drop("text").collect()
    fields = fields.cast({name: of for name, of in SCHEMAS[kind].items() if name in fields.columns}, strict=False)
    is_read = np.zeros(len(lines.texts), dtype=bool)
    is_read[fields["text_id"].to_numpy()] = True
    rows = lines.of_texts(is_read).rows  # which renumbers them in the order of `fields`
    found_rows = pl.concat([rows.drop("text_id"), fields.drop("text_id")[rows["text_id"]]], how="horizontal")
    notes.add_frame(kind, lines.with_prefix(found_rows, "source", "host", "pid", "tid"))
    return is_read
