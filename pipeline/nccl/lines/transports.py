"""Lines on how ranks are connected: `via` lines (src/transport/*.cc) and rings (src/graph/connect.cc)."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.facts import Notes
from sweepscope.pipeline.nccl.lines.distinct import coded
from sweepscope.pipeline.nccl.lines.info_lines import InfoLines

CHANNEL = "Channel "
# The slash has connIndex (2.11+). It was "Ring" until 2.4 and "Coll"
# until 2.9, and until 2.4 a rank beyond the network had no bracket.
_LINK_HEAD = r"(?:Channel|CollNet|Coll|Ring) [0-9]+(?:/[0-9]+)?"
# The bracket is nvmlDev from 2.18 on, busId in hex before. RCCL names the communicator.
_LINK_ENDS = (
    r"(?P<from>[0-9]{1,9})(?:\[[0-9a-f]+\])?(?: -> (?P<to>[0-9]{1,9})(?:\[[0-9a-f]+\])?)?"
    r"(?: \[(?P<direction>send|receive)\])? via (?P<via>.*?)"
    r"(?: comm (?P<comm>0x[0-9a-f]+) nRanks (?P<nranks>[0-9]{1,9}))?"
)
# A ring: rank 0 only, one line per channel; the number after the slash, missing until 2.4, counts the ring channels.
_RING = r"^Channel ([0-9]{1,9})(?:/([0-9]{1,9}))? :?((?:[ \t]+[0-9]+)+)$"
# Complete texts only: a cut one must not become another transport.
_TRANSPORT = re.compile(
    r"(?P<p2p>P2P/(?:IPC|CUMEM|MNNVL|direct pointer|indirect/\d+\[[0-9a-f]+\])(?:/(?:read|CE))*)"
    r"|(?P<shm>SHM(?:/(?:direct|CE)){0,2}|direct shared memory)"  # each end's copies; 2.30 knows one way only
    r"|(?P<net>(?:NET|COLLNET|GIN)/[A-Za-z][\w. -]*?)/(?P<device>-?\d{1,9})(?:\(\d+\))?(?P<gdr>/GDRDMA(?:\(PCI\))?)?"
    r"(?:/Shared)?"
)


def transport_of(via: str) -> tuple[str, str | None] | None:
    """Transport and device; None for what is neither whole nor known.

    >>> [transport_of(text) for text in ("NET/AWS Libfabric/3/GDRDMA", "P2P/indirect/4[af000]", "NET/IB")]
    [('NET/AWS Libfabric/GDRDMA', '3'), ('P2P/indirect', None), None]
    """
    kind = _TRANSPORT.fullmatch(via)
    return None if kind is None else (_name(kind), kind["device"])


def _name(kind: re.Match[str]) -> str:
    """The transport without the device that it uses."""
    if kind["net"]:
        return f"{kind['net']}{kind['gdr'] or ''}"
    if kind["shm"]:
        return "SHM" if kind["shm"].startswith("direct") else str(kind["shm"])
    return "P2P/indirect" if kind["p2p"].startswith("P2P/indirect") else str(kind["p2p"])


def read_links(lines: InfoLines, notes: Notes) -> np.ndarray:
    """`link` facts of `via` lines with their `span`; returns a mask of the texts that were understood."""
    # Lines of one pair differ in the channel, which precedes the first " : ".
    pieces = lines.texts.str.splitn(" : ", 2).struct
    heads, head_id = coded(pieces["field_0"])
    ends, end_id = coded(pieces["field_1"])
    links = _links(ends)
    is_head, is_link = heads.str.contains(f"^{_LINK_HEAD}$").to_numpy(), links["transport"].is_not_null().to_numpy()
    is_read: np.ndarray = is_head[head_id] & is_link[end_id]
    text_id = lines.rows["text_id"].to_numpy()
    rows = lines.rows.select("prefix_id", "line_no", key=pl.col("span") * len(ends) + pl.Series(end_id[text_id]))
    groups = rows.filter(is_read[text_id]).group_by("key")
    counted = groups.agg(pl.col("prefix_id").first(), pl.col("line_no").min(), lines=pl.len())
    threads = lines.with_prefix(counted, "source", "host", "pid", "tid")
    notes.add_frame("link", pl.concat([threads, links[counted["key"] % len(ends)]], how="horizontal"))
    return is_read


def _links(ends: pl.Series) -> pl.DataFrame:
    """Ranks, direction, transport and device of each text after the channel; `transport` is NULL for other texts."""
    links = ends.str.extract_groups(f"^{_LINK_ENDS}$").struct.unnest().rename({"from": "rank_from", "to": "rank_to"})
    found = {via: found for via in links["via"].unique().drop_nulls() if (found := transport_of(via))}
    names = {via: name for via, (name, _) in found.items()}
    devices = {via: device for via, (_, device) in found.items()}
    return links.with_columns(
        pl.col("rank_from", "nranks").cast(pl.Int64),
        rank_to=pl.coalesce("rank_to", "rank_from").cast(pl.Int64),
        transport=pl.col("via").replace_strict(names, default=None, return_dtype=pl.String),
        device=pl.col("via").replace_strict(devices, default=None, return_dtype=pl.String),
    )


def read_rings(lines: InfoLines, notes: Notes) -> np.ndarray:
    """`ring` facts of the first channel, or of each where their number is not printed; returns a mask of the rings.

    Long ones are cut by NCCL's own buffer.
    """
    is_ring = lines.texts.str.contains(_RING).to_numpy()
    is_first = lines.texts.str.contains("^Channel (?:0{1,9}/|[0-9]+ )").to_numpy()
    if (is_ring & is_first).any():
        groups = pl.col("text").str.extract_groups(_RING).struct
        rings = lines.of_texts(is_ring & is_first).with_texts()
        rings = rings.with_columns(
            channels=pl.coalesce(groups[1].cast(pl.Int64), groups[0].cast(pl.Int64) + 1),
            order=groups[2].str.strip_chars().str.replace_all(r"[ \t]+", " "),
        )
        notes.add_frame("ring", rings)
    return is_ring
