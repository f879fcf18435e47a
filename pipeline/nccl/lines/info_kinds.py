"""INFO messages as facts: each kind is read at once, each distinct text of it a single time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.facts import Notes
from sweepscope.pipeline.nccl.lines import collectives, devices, environment, graphs, init, transports, tuning
from sweepscope.pipeline.nccl.lines.info_lines import InfoLines
from sweepscope.pipeline.nccl.lines.messages import NO_HOST, VIA
from sweepscope.pipeline.nccl.lines.spans import Spans


@dataclass(frozen=True)
class _Kind:
    """A kind of message.

    Attributes:
        words: a pattern of polars that its texts match.
        read: adds the facts of its lines to the notes and returns a mask of the texts that it understood.
        owner: "thread" or "process" whose communicators the lines are of, if the reader needs their `span`.
        needs_end: a text that was cut holds no fact.
    """

    words: str
    read: Callable[[InfoLines, Notes], np.ndarray]
    owner: str | None = None
    needs_end: bool = False


_INIT = _Kind("COMPLETE|Init START", partial(init.read, "init"))
# In order: a text is of the first kind whose words it contains.
_KINDS = (
    _Kind(VIA, transports.read_links, owner="thread", needs_end=True),
    _Kind(collectives.WORD, collectives.read_calls, owner="process"),
    _Kind(tuning.CHOICE, tuning.read_choices, needs_end=True),
    _Kind(rf"{transports.CHANNEL}|{graphs.WORDS}", graphs.read_rings_and_trees, owner="thread"),
    _Kind(devices.WORD, devices.read_lists),
    _INIT,
    _Kind("Init timings", partial(init.read, "timing")),
    _Kind(" coll channels, ", partial(init.read, "channels")),
    _Kind(" nRanks ", partial(init.read, "shape")),
    _Kind("Using network ", partial(init.read, "network")),
    _Kind(environment.SETTING, environment.read_settings),
    _Kind(environment.VERSION, environment.read_versions),
)
_NO_KIND = len(_KINDS)
_ANY_BUT_VIA = "|".join(kind.words for kind in _KINDS[1:])


def read_info(lines: InfoLines, notes: Notes) -> None:
    """Add the facts of all INFO messages of a block to `notes`."""
    if lines.rows.is_empty():
        return
    _count_processes(lines, notes)
    kinds = _kinds(lines.texts)
    is_read = np.zeros(len(kinds), dtype=bool)
    inits = lines.of_texts(np.zeros(len(kinds), dtype=bool))
    for kind in sorted(_KINDS, key=lambda kind: kind.owner is not None):  # spans are known when `init` was read
        chosen = kinds == _KINDS.index(kind)
        if kind.needs_end:
            chosen &= ~lines.is_cut
        if not chosen.any():
            continue
        of_kind = lines.of_texts(chosen)
        divided = Spans(inits).divide(of_kind, kind.owner) if kind.owner else of_kind
        is_read[chosen] = kind.read(divided, notes)
        if kind is _INIT:
            inits = lines.of_texts(chosen & is_read)
    _count_unread(lines, ~is_read, notes)


def _kinds(texts: pl.Series) -> np.ndarray:
    """The index of each text's kind, or `_NO_KIND`."""
    found = np.full(len(texts), _NO_KIND)
    left = np.arange(len(texts))
    for number, kind in enumerate(_KINDS):
        holds = texts.gather(left).str.contains(kind.words).to_numpy()
        found[left[holds]] = number
        left = left[~holds]
        if kind.words == VIA:  # most of the others are of no kind
            left = left[texts.gather(left).str.contains(_ANY_BUT_VIA).to_numpy()]
    return found


def _count_processes(lines: InfoLines, notes: Notes) -> None:
    counts = np.bincount(lines.rows["prefix_id"].to_numpy(), minlength=len(lines.prefixes))
    counted = lines.prefixes.with_columns(lines=counts).filter(pl.col("lines") > 0)
    _tally(counted, "lines", notes)
    clean = pl.col("lines").filter("is_first").sum()
    notes.add_frame("process", counted.group_by("source", "host", "pid").agg(pl.col("lines").sum(), clean=clean))


def _count_unread(lines: InfoLines, is_unread: np.ndarray, notes: Notes) -> None:
    prefix_id = lines.rows["prefix_id"].to_numpy()[is_unread[lines.rows["text_id"].to_numpy()]]
    counts = np.bincount(prefix_id, minlength=len(lines.prefixes))
    _tally(lines.prefixes.select("source", "host", lines=counts).filter(pl.col("lines") > 0), "other", notes)


def _tally(prefixes: pl.DataFrame, name: str, notes: Notes) -> None:
    """Count lines by file; those without a host are counted as damaged elsewhere."""
    by_file = prefixes.filter(pl.col("host") != NO_HOST).group_by("source")
    notes.add_frame("tally", by_file.agg(pl.col("lines").sum(), name=pl.lit(name)))
