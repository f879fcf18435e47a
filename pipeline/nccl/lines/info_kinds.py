"""What regular INFO lines say: each kind of them is read at once, each distinct text of it a single time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.facts import Notes
from sweepscope.pipeline.nccl.lines import collectives, devices, graphs, init, transports, tuning
from sweepscope.pipeline.nccl.lines.distinct import coded_rows
from sweepscope.pipeline.nccl.lines.distinct_lines import Lines
from sweepscope.pipeline.nccl.lines.info import Info
from sweepscope.pipeline.nccl.lines.line_reader import FEW, SETTING, LineReader, read_setting
from sweepscope.pipeline.nccl.lines.messages import VIA, Message

_GRAPHS = "|".join(re.escape(word) for word in graphs.WORDS)
# In the order of `line_reader`: the first of these words decides.
_OF_INIT = {
    "COMPLETE|Init START": "init",
    "Init timings": "timing",
    " coll channels, ": "channels",
    " nRanks ": "shape",
    "Using network ": "network",
}
_FEW = "|".join(FEW)
_KINDS = (
    VIA,
    collectives.WORD,
    tuning.CHOICE,
    transports.CHANNEL,
    _GRAPHS,
    devices.WORD,
    *_OF_INIT,
    SETTING,
    _FEW,
)
"""The words of each kind; `_FEW` are those that are left of these in the end."""
_MUTE = len(_KINDS)
_TELLING = "|".join(_KINDS[1:])


def read_info(info: Info, reader: LineReader) -> None:
    """Everything that regular INFO lines say. The odd lines of the block have been read by then."""
    lines, notes = info.lines, reader.notes
    if lines.rows.is_empty():
        return
    _count_processes(lines, notes)
    kinds = _kinds(lines.texts)
    is_mute = kinds == _MUTE
    inits = [pl.DataFrame(reader.inits, schema=_INITS, orient="row")]

    def read(kind: str, how: Callable[[Lines], np.ndarray], *others: str) -> None:
        """Read the lines of a kind, or of several together; `how` says which of their texts tell nothing."""
        chosen = np.isin(kinds, [_KINDS.index(one) for one in (kind, *others)])
        if chosen.any():
            is_mute[chosen] = how(lines.of_texts(chosen))

    def read_init(of_kind: Lines, kind: str) -> np.ndarray:
        told, is_told = init.read_columns(kind, of_kind, notes)
        if kind == "init":
            inits.append(told.select(_INITS.names()).cast(_INITS))
        return ~is_told

    for words, kind in _OF_INIT.items():
        read(words, partial(read_init, kind=kind))
    read(SETTING, partial(_read_settings, notes=notes))
    read(_FEW, partial(_read_singly, reader=reader))
    read(tuning.CHOICE, partial(tuning.read_choices, notes=notes))
    read(devices.WORD, partial(devices.read_lists, notes=notes))
    spans = _Spans(lines.threads, pl.concat(inits))
    read(VIA, lambda links: transports.read_links(spans.divide(links, "thread"), notes))
    read(collectives.WORD, lambda calls: collectives.read_calls(spans.divide(calls, "process"), notes))
    read(
        transports.CHANNEL,
        lambda paths: graphs.read_graphs(spans.divide(paths, "thread"), notes) & transports.read_rings(paths, notes),
        _GRAPHS,
    )
    _count_mute(lines, is_mute, notes)


def _kinds(texts: pl.Series) -> np.ndarray:
    """Of each text, the first of `_KINDS` whose words it holds; or `_MUTE`."""
    found = np.full(len(texts), _MUTE)
    left = np.arange(len(texts))
    for kind, words in enumerate(_KINDS):
        holds = texts.gather(left).str.contains(words).to_numpy()
        found[left[holds]] = kind
        left = left[~holds]
        if words == VIA:  # most of the others tell nothing
            left = left[texts.gather(left).str.contains(_TELLING).to_numpy()]
    return found


def _count_processes(lines: Lines, notes: Notes) -> None:
    counts = np.bincount(lines.rows["who"].to_numpy(), minlength=len(lines.threads))
    counted = lines.threads.with_columns(lines=counts).filter(pl.col("lines") > 0)
    _tally(counted, "lines", notes)
    clean = pl.col("lines").filter("is_first").sum()
    notes.add_frame("process", counted.group_by("source", "host", "pid").agg(pl.col("lines").sum(), clean=clean))


def _count_mute(lines: Lines, is_mute: np.ndarray, notes: Notes) -> None:
    who = lines.rows["who"].to_numpy()[is_mute[lines.rows["told"].to_numpy()]]
    counts = np.bincount(who, minlength=len(lines.threads))
    _tally(lines.threads.select("source", lines=counts).filter(pl.col("lines") > 0), "other", notes)


def _tally(lines: pl.DataFrame, name: str, notes: Notes) -> None:
    notes.add_frame("tally", lines.group_by("source").agg(pl.col("lines").sum(), name=pl.lit(name)))


def _read_settings(lines: Lines, notes: Notes) -> np.ndarray:
    is_mute = np.zeros(len(lines.texts), dtype=bool)
    for source, told, line_no, count in lines.alike().iter_rows():
        is_mute[told] = not read_setting(lines.texts[told], line_no, notes.at(source), lines=count)
    return is_mute


def _read_singly(lines: Lines, reader: LineReader) -> np.ndarray:
    """Lines of the kinds that are rare."""
    is_mute = np.zeros(len(lines.texts), dtype=bool)
    names = ("at", "source", "line_no", "told", "host", "pid", "tid", "dev", "text")
    for place, source, line_no, told, host, pid, tid, dev, text in lines.named().select(names).iter_rows():
        reader.notes.source = source
        message = Message(host, pid, tid, dev, "INFO", text, is_cut=False, is_first=True)
        is_mute[told] = not reader.info(message, line_no, place)
    return is_mute


_INITS = pl.Schema({"at": pl.Int64, "host": pl.String, "pid": pl.Int64, "tid": pl.Int64})


class _Spans:
    """Where communicators begin and end, by thread and by process."""

    def __init__(self, threads: pl.DataFrame, inits: pl.DataFrame) -> None:
        """`inits`: the lines with which they do, as _INITS."""
        # A host's name may have swallowed the end of another text, and which names are one is known of the whole file
        # only (see `hosts`): they have the same end, so what ends a span of one ends those of all with that end.
        end = pl.col("host").str.tail(1).alias("end")
        self._threads, self._inits = threads.with_columns(end), inits.with_columns(end)

    def divide(self, lines: Lines, whose: str) -> Lines:
        """`lines` with the `span` of each: no communicator of its thread or process (`whose`) begins or ends between
        lines of one span."""
        names = ["end", "pid", "tid"] if whose == "thread" else ["end", "pid"]
        owners, owner = coded_rows(self._threads.select(names))
        ends = self._inits.join(owners.with_columns(owner=pl.int_range(pl.len())), on=names)
        who, at = lines.rows["who"].to_numpy(), lines.rows["at"].to_numpy()
        marks = np.sort(_place(ends["owner"].to_numpy(), ends["at"].to_numpy()))
        places = _place(owner[who], at)
        order = np.argsort(owner[who].astype(np.min_scalar_type(len(owners))), kind="stable")  # fast for few owners
        passed = np.empty(len(places), dtype=np.int64)
        passed[order] = np.searchsorted(marks, places[order])  # and so is this in their order
        span = self._threads[whose].to_numpy()[who] * (len(marks) + 1) + passed
        return replace(lines, rows=lines.rows.with_columns(span=span))


def _place(owner: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Lines in the order of their owners, one number each; a block has far fewer lines than 2^32."""
    found: np.ndarray = (owner.astype(np.int64) << 32) + at
    return found
