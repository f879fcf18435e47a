"""Lines that say how ranks are connected: `via` lines (src/transport/*.cc) and rings (src/graph/connect.cc)."""

from __future__ import annotations

import re

from pipeline.nccl.facts import Notes
from pipeline.nccl.messages import Message

# The bracket is nvmlDev from 2.18 on, busId in hex before. The slash has connIndex (2.11+).
_LINK = re.compile(
    r"(?:Channel|CollNet) \d+(?:/\d+)? : (?P<from>\d{1,9})(?:\[[0-9a-f]+\])?(?: -> (?P<to>\d{1,9})\[[0-9a-f]+\])?"
    r"(?: \[(?P<direction>send|receive)\])? via (?P<via>.*)"
)
# A ring: rank 0 only, one line per channel; the number behind the slash is that of the ring channels.
_RING = re.compile(r"Channel (\d{1,9})/(\d{1,9}) :?((?:\s+\d+)+)\s*\Z")
# Whole texts only: what was cut must not become a transport of its own.
_TRANSPORT = re.compile(
    r"(?P<p2p>P2P/(?:IPC|CUMEM|MNNVL|direct pointer|indirect/\d+\[[0-9a-f]+\])(?:/(?:read|CE))*)"
    r"|(?P<shm>SHM(?:/\w+/\w+)?|direct shared memory)"
    r"|(?P<net>(?:NET|COLLNET|GIN)/[A-Za-z][\w. -]*?)/(?P<device>-?\d{1,9})(?:\(\d+\))?(?P<gdr>/GDRDMA(?:\(PCI\))?)?"
    r"(?:/Shared)?"
)
_RCCL = re.compile(r" comm (0x[0-9a-f]+) nRanks \d+\Z")


def read_link(message: Message, line_no: int, epoch: int, notes: Notes) -> bool:
    """A `via` line. `epoch` counts the communicators that the thread has finished in this block, so that the lines of
    two communicators stay apart. Of a line that was cut nothing is taken."""
    found = None if message.is_cut else _LINK.match(message.text)
    if found is None:
        return False
    via, comm = found["via"], None
    if rccl := _RCCL.search(via):
        via, comm = via[: rccl.start()], rccl[1]
    kind = _TRANSPORT.fullmatch(via)
    if kind is None:
        return False
    rank_from = int(found["from"])
    rank_to = int(found["to"]) if found["to"] else rank_from
    notes.count(
        "link", line_no, message.host, message.pid, message.tid, comm, rank_from, rank_to, found["direction"],
        transport_name(kind), kind["device"], epoch,
    )  # fmt: skip
    return True


def transport_name(kind: re.Match[str]) -> str:
    """The transport without the device that it uses.

    >>> [transport_name(_TRANSPORT.fullmatch(t)) for t in ("NET/AWS Libfabric/3/GDRDMA", "P2P/indirect/4[af000]")]
    ['NET/AWS Libfabric/GDRDMA', 'P2P/indirect']
    """
    if kind["net"]:
        return f"{kind['net']}{kind['gdr'] or ''}"
    if kind["shm"]:
        return "SHM" if kind["shm"].startswith("direct") else str(kind["shm"])
    return "P2P/indirect" if kind["p2p"].startswith("P2P/indirect") else str(kind["p2p"])


def read_ring(message: Message, line_no: int, notes: Notes) -> bool:
    """The ring of a channel. Kept for the first channel; long ones are cut by NCCL's own buffer."""
    found = _RING.match(message.text)
    if found is None:
        return False
    if int(found[1]) == 0:
        order = " ".join(found[3].split())
        notes.add("ring", line_no, message.host, message.pid, message.tid, int(found[2]), order)
    return True
