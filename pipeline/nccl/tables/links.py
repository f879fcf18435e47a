"""The fold for links: the communicator of each `via` line.

The thread that brings a communicator up prints them before its Init COMPLETE. With NCCL_RUNTIME_CONNECT (2.22 on) they
come later, with the first collective and often by another thread: then they belong to the communicator that the thread,
or else the process, had brought up last. RCCL names the communicator's address.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.lines.distinct import coded_rows
from sweepscope.pipeline.nccl.tables.asof import NONE, Events, owners, taken
from sweepscope.pipeline.nccl.tables.communicators import Communicators

_THREAD, _PROCESS = ["source", "host", "pid", "tid"], ["source", "host", "pid"]
_LINK = ["source", "comm_index", "rank_from", "rank_to", "kind"]
_END = 1 << 62


def link_rows(links: pl.DataFrame, comms: Communicators) -> pl.DataFrame:
    """Rows of `nccl_links`, one per pair of ranks, direction and transport.

    Args:
        links: `link` facts of files.
        comms: the communicators of the files.
    """
    kinds, kind = coded_rows(links.select("direction", "transport"))
    devices = links["device"].unique().drop_nulls().sort()
    lines = links.select(
        "source",
        "rank_from",
        "rank_to",
        "line_no",
        "lines",
        kind=pl.Series(kind),
        comm_index=_comm_index(links, comms),
        device=pl.col("device").cast(pl.Enum(devices)).to_physical(),
    ).sort("source", "line_no", maintain_order=True)
    rows = lines.group_by(_LINK, maintain_order=True).agg(
        pl.col("line_no").min(),
        link_channels=pl.col("lines").sum(),
        device=pl.col("device").min(),
        most=pl.col("device").max(),
    )
    has_several = pl.col("device") != pl.col("most")
    several = _several(lines.join(rows.filter(has_several), on=_LINK, how="semi", nulls_equal=True), devices)
    return rows.join(several, on=_LINK, how="left", nulls_equal=True, maintain_order="left").select(
        "source",
        "comm_index",
        "rank_from",
        "rank_to",
        *kinds[rows["kind"]].get_columns(),
        pl.coalesce("several", devices.gather(rows["device"])).alias("net_devices"),
        "link_channels",
        "line_no",
    )


def _several(lines: pl.DataFrame, devices: pl.Series) -> pl.DataFrame:
    """The names of all devices of links that use several."""
    used = lines.drop_nulls("device").select(*_LINK, "device").unique().sort("device")
    named = used.with_columns(devices.gather(used["device"]).alias("device"))
    return named.group_by(_LINK, maintain_order=True).agg(several=pl.col("device").str.join(", "))


def transports(rows: pl.DataFrame) -> pl.DataFrame:
    """`transports` of each `source` and `comm_index`, from rows of `nccl_links`."""
    key = ["source", "comm_index"]
    used = rows.drop_nulls("comm_index").select(*key, "transport").unique().sort("transport")
    return used.group_by(key).agg(transports=pl.col("transport").str.join(", "))


def _comm_index(links: pl.DataFrame, comms: Communicators) -> pl.Series:
    """The communicator of each line; NULL where it is unknown."""
    line_no, events = links["line_no"].to_numpy(), comms.events
    ends = links.select("rank_from", "rank_to").to_numpy()
    thread, process = owners(events, links, _THREAD, _PROCESS)
    of_thread = Events(*thread, events["line_no"].to_numpy())
    # The next line of the thread about a communicator: that it is ready, or that another one begins.
    following, latest = of_thread.after(line_no), of_thread.before(line_no)
    next_line = np.where(following == NONE, _END, taken(events["line_no"], following))
    of_process = Events(*process, events["line_no"].to_numpy()).before(next_line - 1)
    next_is_ready = taken(events["is_ready"].cast(pl.Int8), following) == 1
    found = _joined(events, latest, ends)
    found = np.where(found == NONE, _joined(events, of_process, ends), found)
    found = np.where(next_is_ready, _joined(events, following, ends), found)
    named = _named(links, comms)
    found = np.where(named == NONE, found, named)
    return pl.Series(found).replace(NONE, None)


def _joined(events: pl.DataFrame, indices: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The communicators of the events, if their rank is an end of the link and both ends exist; else NONE."""
    rank, nranks = taken(events["rank"], indices), taken(events["nranks"], indices)
    is_end = (ends == rank[:, None]).any(axis=1) & (ends.max(axis=1, initial=0) < nranks)
    return np.where(is_end, taken(events["comm_index"], indices), NONE)


def _named(links: pl.DataFrame, comms: Communicators) -> np.ndarray:
    """The communicators whose addresses the lines print, until these end."""
    found = np.full(len(links), NONE)
    has_name = links["comm"].is_not_null()
    if has_name.any():
        lines, incarnations = links.filter(has_name), comms.incarnations()
        line_no = lines["line_no"].to_numpy()
        (address,) = owners(incarnations, lines, [*_PROCESS, "comm"])
        indices = Events(*address, incarnations["line_no"].to_numpy()).before(line_no)
        is_alive = taken(incarnations["ended_at"].fill_null(_END), indices) > line_no
        found[has_name.to_numpy()] = np.where(is_alive, taken(incarnations["comm_index"], indices), NONE)
    return found
