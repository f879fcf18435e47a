"""INFO lines as whole columns: what NCCL prints by the thousand is read at the speed of string kernels.

A line is cut at ` NCCL INFO `. What stands before it repeats (launcher, process, thread), so each distinct prefix is
read once; what stands behind it falls into a few kinds. Connections and COLL lines are grouped by the part that does
not count channels or calls, and only the groups are looked into. Lines that are not of this form (warnings, glued,
cut, without a prefix) are left to `line_reader`, which reads all kinds one line at a time; both must say the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from pipeline.nccl import bench, collectives, devices, graphs, init, transports, tuning, watchdog
from pipeline.nccl.block import Block
from pipeline.nccl.facts import Notes
from pipeline.nccl.line_reader import ESCAPES, FEW, LEAD_CHARS, SETTING, LineReader, read_setting
from pipeline.nccl.messages import BLANKS, HEAD, RAY_COUNT, VIA, Message

MIN_LINES = 48
"""Fewer lines are read one by one: a column's fixed cost is that of some ten lines."""

_MAX_LINE_BYTES = 4096
_MARK = " NCCL INFO "
# A launcher's words, host, process, thread, device; as `messages` finds them from the end.
_PREFIX = r"^(.*?)([A-Za-z0-9_.-]{1,255}):([0-9]{1,10}):([0-9]{1,10}) \[(-?[0-9]{1,4})\]$"
_FEW = "|".join(FEW)
# In the order of `line_reader`: the first of these words decides.
_OF_INIT = {
    "COMPLETE|Init START": "init", "Init timings": "timing", " coll channels, ": "channels", " nRanks ": "shape",
    "Using network ": "network",
}  # fmt: skip
_GRAPHS = "|".join(re.escape(word) for word in graphs.WORDS)
_SINGLY = "|".join((*watchdog.LITERALS, RAY_COUNT))
_REST = "|".join((collectives.WORD, tuning.CHOICE, transports.CHANNEL, _GRAPHS, devices.WORD, _FEW))
"""What lines other than links hold that tell something."""


@dataclass(frozen=True)
class Info:
    """Regular INFO lines.

    Attributes:
        rows: `at` (index in the block), `source`, `line_no`, `prefix` (index into `prefixes`), `text`.
        prefixes: `prefix`, `host`, `pid`, `tid`, `dev`, `is_first`, and dense numbers of its `thread` and `process`.
        odd: indices of the other lines, in order.
    """

    rows: pl.DataFrame
    prefixes: pl.DataFrame
    odd: np.ndarray

    @classmethod
    def of(cls, block: Block, at: np.ndarray) -> Info:
        """`at`: the lines of the block that hold NCCL."""
        lines = block.text.gather(at)
        is_short = lines.str.len_bytes() <= _MAX_LINE_BYTES
        if block.has_escapes and lines.str.contains("\x1b", literal=True).any():
            lines = lines.str.replace_all(ESCAPES, "")
        pieces = lines.str.splitn(_MARK, 2).struct
        text = pieces["field_1"].str.strip_chars_end(BLANKS)
        prefixes, prefix = _prefixes(pieces["field_0"])
        is_regular = (
            is_short & text.is_not_null() & prefix.is_not_null() & ~text.str.contains(f"{HEAD}|{_SINGLY}")
        ).fill_null(value=False)
        rows = pl.DataFrame({"at": at, "prefix": prefix, "text": text}).filter(is_regular)
        places = rows["at"].to_numpy()
        rows = rows.with_columns(
            source=pl.Series(block.source[places], dtype=pl.Int64),
            line_no=pl.Series(block.line_no[places], dtype=pl.Int64),
        )
        return cls(rows, prefixes, at[~is_regular.to_numpy()])


def _prefixes(text: pl.Series) -> tuple[pl.DataFrame, pl.Series]:
    """The distinct regular prefixes, and the index of each line's; NULL for another one."""
    names, codes = _coded(text)
    parts = pl.DataFrame({"name": names}).with_row_index("prefix").with_columns(
        pl.col("name").str.extract_groups(_PREFIX).struct.rename_fields(["lead", "host", "pid", "tid", "dev"])
    ).unnest("name")  # fmt: skip
    lead = pl.col("lead")
    may_hold_row = (lead.str.len_chars() > LEAD_CHARS) & (lead.str.contains(bench.ROW) | lead.str.contains(bench.REST))
    is_regular = pl.col("host").is_not_null() & ~lead.str.contains(HEAD) & ~may_hold_row
    parts = parts.filter(is_regular)
    _, process = _coded(parts.select(pl.concat_str("host", "pid", separator=":")).to_series())
    _, thread = _coded(parts.select(pl.concat_str("host", "pid", "tid", separator=":")).to_series())
    parts = parts.with_columns(
        pl.col("pid", "tid", "dev").cast(pl.Int64), is_first=lead.str.contains(r"(?:^|[ >:\t)\]])$"),
        process=process, thread=thread,
    )  # fmt: skip
    known = np.zeros(len(names) + 1, dtype=bool)
    known[parts["prefix"].to_numpy()] = True
    is_known = pl.Series(known[codes.fill_null(len(names)).to_numpy()])
    return parts.drop("lead"), pl.select(pl.when(is_known).then(codes)).to_series()


def _coded(text: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The distinct values, and the index of each line's among them; NULL for none."""
    names = text.unique().drop_nulls()
    return names, text.cast(pl.Enum(names)).to_physical().cast(pl.UInt32)


def read_info(info: Info, reader: LineReader) -> None:
    """Everything that regular INFO lines say. The odd lines of the block have been read by then."""
    notes = reader.notes
    if info.rows.is_empty():
        return
    _count_processes(info, notes)
    other, links = _divided(info.rows, VIA)
    mute, other = _divided(other, _REST)
    kinds = []
    for pattern in (collectives.WORD, tuning.CHOICE, transports.CHANNEL, _GRAPHS, devices.WORD):
        other, held = _divided(other, pattern)
        kinds.append(held)
    calls, choices, rings, paths, network = kinds
    # What tells nothing is counted.
    silent, ends = _read_few(other, info, reader)
    silent += [mute, devices.read_lists(network, info.prefixes, notes)]
    if not choices.is_empty():
        silent.append(tuning.read_choices(choices, notes))
    if not (rings.is_empty() and paths.is_empty()):
        drawn = ends.divide(pl.concat([rings, paths]), "thread")
        of_none = graphs.read_graphs(drawn, info.prefixes, notes)
        silent.append(of_none.join(rings, on="at", how="anti"))
        silent.append(transports.read_rings(rings, info.prefixes, notes).join(of_none, on="at", how="semi"))
    if not calls.is_empty():
        silent.append(collectives.read_calls(ends.divide(calls, "process"), info.prefixes, notes))
    counts = [rows.select("source", lines=pl.lit(1, pl.UInt32)) for rows in silent]
    if not links.is_empty():
        counts.append(transports.read_links(ends.divide(links, "thread"), info.prefixes, notes))
    _tally(pl.concat(counts), "other", notes)


def _divided(rows: pl.DataFrame, pattern: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The lines without and those with the pattern."""
    holds = rows["text"].str.contains(pattern)
    if not holds.any():
        return rows, rows.clear()
    return rows.filter(~holds), rows.filter(holds)


def _count_processes(info: Info, notes: Notes) -> None:
    counted = info.rows.group_by("source", "prefix").agg(lines=pl.len()).join(info.prefixes, on="prefix")
    _tally(counted, "lines", notes)
    clean = pl.col("lines").filter("is_first").sum()
    notes.add_frame("process", counted.group_by("source", "host", "pid").agg(pl.col("lines").sum(), clean=clean))


def _tally(lines: pl.DataFrame, name: str, notes: Notes) -> None:
    notes.add_frame("tally", lines.group_by("source").agg(pl.col("lines").sum(), name=pl.lit(name)))


def _read_few(few: pl.DataFrame, info: Info, reader: LineReader) -> tuple[list[pl.DataFrame], _Ends]:
    """Lines of the kinds that are few; returns those that tell nothing, and where communicators begin and end."""
    mute, begun = [], [pl.DataFrame(reader.inits, schema=_INITS, orient="row")]
    for words, kind in _OF_INIT.items():
        few, rows = _divided(few, words)
        if not rows.is_empty():
            told = init.read_columns(kind, rows, info.prefixes, reader.notes)
            mute.append(rows.join(told, on="at", how="anti"))
            if kind == "init":
                begun.append(told.select(_INITS.names()).cast(_INITS))
    few, settings = _divided(few, SETTING)
    for source, text, line_no, lines in _alike(settings).iter_rows():
        if not read_setting(text, line_no, reader.notes.at(source), lines=lines):
            mute.append(settings.filter((pl.col("source") == source) & (pl.col("text") == text)))
    return [*mute, _read_singly(few, info.prefixes, reader)], _Ends(info.prefixes, pl.concat(begun))


def _alike(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("source", "text").agg(pl.col("line_no").min(), lines=pl.len())


def _read_singly(rows: pl.DataFrame, prefixes: pl.DataFrame, reader: LineReader) -> pl.DataFrame:
    """Lines of the kinds that are rare; returns those that tell nothing."""
    told = rows.join(prefixes, on="prefix", maintain_order="left")
    is_mute = []
    for place, source, line_no, host, pid, tid, dev, text in told.select(
        "at", "source", "line_no", "host", "pid", "tid", "dev", "text"
    ).iter_rows():
        reader.notes.source = source
        message = Message(host, pid, tid, dev, "INFO", text, is_cut=False, is_first=True)
        is_mute.append(not reader.info(message, line_no, place))
    return rows.filter(pl.Series(is_mute, dtype=pl.Boolean))


_INITS = pl.Schema({"at": pl.Int64, "host": pl.String, "pid": pl.Int64, "tid": pl.Int64})


class _Ends:
    """Where communicators begin and end, by thread and by process."""

    def __init__(self, prefixes: pl.DataFrame, inits: pl.DataFrame) -> None:
        """`inits`: the lines with which they do, as _INITS."""
        self._prefixes, self._inits = prefixes, inits

    def divide(self, rows: pl.DataFrame, who: str) -> pl.DataFrame:
        """`rows` with the number of their thread or process (`who`) and `segment`: no communicator of it begins or
        ends between lines of one segment."""
        # A host's name may have swallowed the end of another text, and which names are one is known of the whole file
        # only (see `hosts`): they have the same end, so what ends a segment of one ends those of all with that end.
        names = ["end", "pid", "tid"] if who == "thread" else ["end", "pid"]
        end = pl.col("host").str.tail(1).alias("end")
        prefixes = self._prefixes.with_columns(end).with_columns(alike=pl.struct(names).rank("dense"))
        ends = self._inits.with_columns(end).join(prefixes.select(*names, "alike").unique(), on=names)
        owner, alike = (_of_prefix(prefixes, name, rows["prefix"]) for name in (who, "alike"))
        marks = np.sort(_place(ends["alike"].to_numpy(), ends["at"].to_numpy()))
        segment = np.searchsorted(marks, _place(alike, rows["at"].to_numpy()))
        return rows.with_columns(pl.Series(who, owner, dtype=pl.UInt32), segment=pl.Series(segment, dtype=pl.Int64))


def _of_prefix(prefixes: pl.DataFrame, name: str, prefix: pl.Series) -> np.ndarray:
    """A number that each prefix has, for each line's."""
    place = prefixes["prefix"].to_numpy()
    told = np.zeros(place.max(initial=0) + 1, dtype=np.int64)
    told[place] = prefixes[name].to_numpy()
    found: np.ndarray = told[prefix.to_numpy()]
    return found


def _place(owner: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Lines in the order of their owners, one number each; a block has far fewer lines than 2^32."""
    found: np.ndarray = (owner.astype(np.int64) << 32) + at
    return found
