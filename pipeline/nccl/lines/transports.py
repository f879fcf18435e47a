"""Lines that say how ranks are connected: `via` lines (src/transport/*.cc) and rings (src/graph/connect.cc)."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.facts import Notes
from sweepscope.pipeline.nccl.lines.distinct import coded
from sweepscope.pipeline.nccl.lines.distinct_lines import Lines
from sweepscope.pipeline.nccl.lines.messages import Message

CHANNEL = "Channel "
# In the syntax of both Python's `re` and polars. The slash has connIndex (2.11+). It was "Ring" until 2.4 and "Coll"
# until 2.9, and until 2.4 a rank beyond the network had no bracket.
LINK_HEAD = r"(?:Channel|CollNet|Coll|Ring) [0-9]+(?:/[0-9]+)?"
# The bracket is nvmlDev from 2.18 on, busId in hex before. RCCL names the communicator.
LINK_ENDS = (
    r"(?P<from>[0-9]{1,9})(?:\[[0-9a-f]+\])?(?: -> (?P<to>[0-9]{1,9})(?:\[[0-9a-f]+\])?)?"
    r"(?: \[(?P<direction>send|receive)\])? via (?P<via>.*?)(?: comm (?P<comm>0x[0-9a-f]+) nRanks [0-9]+)?"
)
_LINK = re.compile(f"{LINK_HEAD} : {LINK_ENDS}")
# A ring: rank 0 only, one line per channel; the number behind the slash, missing until 2.4, is that of ring channels.
RING = r"^Channel ([0-9]{1,9})(?:/([0-9]{1,9}))? :?((?:[ \t]+[0-9]+)+)$"
_RING = re.compile(RING)
# Whole texts only: what was cut must not become a transport of its own.
_TRANSPORT = re.compile(
    r"(?P<p2p>P2P/(?:IPC|CUMEM|MNNVL|direct pointer|indirect/\d+\[[0-9a-f]+\])(?:/(?:read|CE))*)"
    r"|(?P<shm>SHM(?:/(?:direct|CE)){0,2}|direct shared memory)"  # each end's copies; 2.30 knows one way only
    r"|(?P<net>(?:NET|COLLNET|GIN)/[A-Za-z][\w. -]*?)/(?P<device>-?\d{1,9})(?:\(\d+\))?(?P<gdr>/GDRDMA(?:\(PCI\))?)?"
    r"(?:/Shared)?"
)


def read_link(message: Message, line_no: int, notes: Notes) -> bool:
    """A `via` line. Of a line that was cut nothing is taken."""
    found = None if message.is_cut else _LINK.fullmatch(message.text)
    told = found and transport_of(found["via"])
    if found is None or told is None:
        return False
    rank_from = int(found["from"])
    rank_to = int(found["to"]) if found["to"] else rank_from
    notes.add(
        "link",
        line_no,
        message.host,
        message.pid,
        message.tid,
        found["comm"],
        rank_from,
        rank_to,
        found["direction"],
        *told,
        1,
    )
    return True


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


def read_ring(message: Message, line_no: int, notes: Notes) -> bool:
    """The ring of a channel. Kept for the first channel, or for each where their number is not told.

    Long ones are cut by NCCL's own buffer.
    """
    found = _RING.match(message.text)
    if found is None:
        return False
    if int(found[1]) == 0 or found[2] is None:
        channels = int(found[1]) + 1 if found[2] is None else int(found[2])
        order = " ".join(found[3].split())
        notes.add("ring", line_no, message.host, message.pid, message.tid, channels, order)
    return True


def read_links(lines: Lines, notes: Notes) -> np.ndarray:
    """Whole columns of `via` lines; says which of their texts tell nothing.

    Args:
        lines: with the `span` of each: what stands on both sides of a line with which a communicator of the thread
            begins or ends is of two spans.
    """
    # Lines of one pair differ in the channel, which stands before the first " : ".
    pieces = lines.texts.str.splitn(" : ", 2).struct
    heads, head = coded(pieces["field_0"])
    ends, end = coded(pieces["field_1"])
    links = _links(ends)
    tells: np.ndarray = (
        heads.str.contains(f"^{LINK_HEAD}$").to_numpy()[head] & links["transport"].is_not_null().to_numpy()[end]
    )
    told = lines.rows["told"].to_numpy()
    rows = lines.rows.select("who", "line_no", key=pl.col("span") * len(ends) + pl.Series(end[told]))
    groups = (
        rows.filter(tells[told]).group_by("key").agg(pl.col("who").first(), pl.col("line_no").min(), lines=pl.len())
    )
    threads = lines.threads[groups["who"]].select("source", "host", "pid", "tid")
    notes.add_frame("link", pl.concat([groups, threads, links[groups["key"] % len(ends)]], how="horizontal"))
    return ~tells


def _links(ends: pl.Series) -> pl.DataFrame:
    """What each text behind the channel says: ranks, direction, transport; NULL where it says nothing."""
    links = (
        pl.DataFrame({"ends": ends})
        .select(pl.col("ends").str.extract_groups(f"^{LINK_ENDS}$").alias("found"))
        .unnest("found")
        .rename({"from": "rank_from", "to": "rank_to"})
    )
    told = {via: told for via in links["via"].unique().drop_nulls() if (told := transport_of(via))}
    names = {via: name for via, (name, _) in told.items()}
    devices = {via: device for via, (_, device) in told.items()}
    return links.with_columns(
        pl.col("rank_from").cast(pl.Int64),
        rank_to=pl.coalesce("rank_to", "rank_from").cast(pl.Int64),
        transport=pl.col("via").replace_strict(names, default=None, return_dtype=pl.String),
        device=pl.col("via").replace_strict(devices, default=None, return_dtype=pl.String),
    )


def read_rings(lines: Lines, notes: Notes) -> np.ndarray:
    """Whole columns of rings; says which of their texts are none."""
    is_ring = lines.texts.str.contains(RING).to_numpy()
    is_first = lines.texts.str.contains("^Channel (?:0{1,9}/|[0-9]+ )").to_numpy()
    if (is_ring & is_first).any():
        groups = pl.col("text").str.extract_groups(RING).struct
        notes.add_frame(
            "ring",
            lines.of_texts(is_ring & is_first)
            .named()
            .with_columns(
                channels=pl.coalesce(groups[1].cast(pl.Int64), groups[0].cast(pl.Int64) + 1),
                order=groups[2].str.strip_chars().str.replace_all(r"[ \t]+", " "),
            ),
        )
    return ~is_ring
