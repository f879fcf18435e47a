"""Facts read from blocks of lines: a frame per kind, of many files together. The map's result and the fold's input."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

_I, _S, _F = pl.Int64, pl.String, pl.Float64
_THREAD: dict[str, Any] = {"line_no": _I, "host": _S, "pid": _I, "tid": _I}
PARTS = ("kernels", "alloc", "bootstrap", "allgathers", "topo", "graphs", "connections", "rest")
"""Parts of the initialisation time, as NCCL names them (src/init.cc, "Init timings")."""

_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    # host:pid as printed; how often at the beginning of a line, where nothing can be glued to it
    "process": {"host": _S, "pid": _I, "lines": _I, "clean": _I},
    "version": {"line_no": _I, "flavour": _S, "version": _S},
    "init": _THREAD
    | {
        "state": _S,
        "api": _S,
        "comm": _S,
        "rank": _I,
        "nranks": _I,
        "cuda_dev": _I,
        "nvml_dev": _I,
        "bus_id": _S,
        "comm_hash": _S,
        "parent": _S,
        "split_count": _I,
        "color": _I,
    },
    "timing": _THREAD | {"rank": _I, "nranks": _I, "total": _F, **dict.fromkeys(PARTS, _F)},
    "shape": _THREAD | {"comm": _S, "rank": _I, "nranks": _I, "nnodes": _I},
    "ring": _THREAD | {"channels": _I, "order": _S},
    "channels": _THREAD | {"coll": _I, "collnet": _I, "nvls": _I, "p2p": _I, "per_peer": _I},
    "network": _THREAD | {"network": _S},
    "link": _THREAD
    | {
        "comm": _S,
        "rank_from": _I,
        "rank_to": _I,
        "direction": _S,
        "transport": _S,
        "device": _S,
        "lines": _I,
    },
    # ranks that send from each to the next one; of_ranks: a ring, closed if the communicator is of that size;
    # channels: a bit for each of 64, of which the first is the number 64 * sixty_fours
    "graph": _THREAD
    | {
        "graph": _S,
        "ranks": pl.List(pl.Int32),
        "of_ranks": _I,
        "sixty_fours": _I,
        "channels": pl.UInt64,
    },
    "device": {
        "line_no": _I,
        "host": _S,
        "pid": _I,
        "network": _S,
        "number": _I,
        "name": _S,
        "port": _S,
        "layer": _S,
        "lines": _I,
    },
    "tuning": {"line_no": _I, "op": _S, "size": _I, "algorithm": _S, "protocol": _S, "channels": _S, "lines": _I},
    "coll": {
        "line_no": _I,
        "host": _S,
        "pid": _I,
        "comm": _S,
        "op": _S,
        "datatype": _I,
        "count": _I,
        "redop": _I,
        "root": _I,
        "nranks": _I,
        "lines": _I,
        "last_op": _I,
        "last_line": _I,
    },
    "warn": {"line_no": _I, "host": _S, "pid": _I, "text": _S, "lines": _I},
    "env": {"line_no": _I, "name": _S, "value": _S, "lines": _I},
    "bench_row": {
        "line_no": _I,
        "size": _I,
        "count": _I,
        "datatype": _S,
        "reduction": _S,
        "rest": _S,
        "is_torn": pl.Boolean,
    },
    "bench_rest": {"line_no": _I, "rest": _S},
    "bench_mark": {"line_no": _I, "mark": _S, "value": _S},
    "watchdog": {
        "line_no": _I,
        "kind": _S,
        "rank": _I,
        "printed_rank": _I,
        "op": _S,
        "seq": _I,
        "numel_in": _I,
        "numel_out": _I,
        "timeout_ms": _I,
        "ran_for_ms": _I,
        "group": _S,
        "enqueued": _I,
        "completed": _I,
        "stamp": _S,
        "text": _S,
    },
    "tally": {"name": _S, "lines": _I},
}
SCHEMAS: Mapping[str, pl.Schema] = {kind: pl.Schema({"source": _I, **columns}) for kind, columns in _COLUMNS.items()}


_EMPTY = {kind: pl.DataFrame(schema=schema) for kind, schema in SCHEMAS.items()}


@dataclass(frozen=True)
class Facts:
    """Frames by kind, of any blocks of any files (`source` is its number); kinds without rows are left out."""

    frames: dict[str, pl.DataFrame]

    def __getitem__(self, kind: str) -> pl.DataFrame:
        found = self.frames.get(kind)
        return _EMPTY[kind] if found is None else found

    def take(self, kind: str) -> pl.DataFrame:
        """The frame of a kind, which is removed, so that memory does not hold it beside the rows made of it."""
        return self.frames.pop(kind, _EMPTY[kind])

    def __bool__(self) -> bool:
        return bool(self.frames)

    def of(self, sources: Collection[int]) -> Facts:
        """The facts of some of the files."""
        return self._chosen(pl.col("source").is_in(list(sources)))

    def without(self, sources: Collection[int]) -> Facts:
        """The facts of the other files."""
        return self._chosen(~pl.col("source").is_in(list(sources)))

    def _chosen(self, files: pl.Expr) -> Facts:
        chosen = {}
        for kind, frame in self.frames.items():
            rows = frame.select(files).to_series()
            if rows.any():
                chosen[kind] = frame if rows.all() else frame.filter(rows)  # of one large file: without a copy
        return Facts(chosen)

    def shifted(self, lines: int) -> Facts:
        """The same facts with line numbers as if so many lines came before."""
        numbers = pl.col("^line_no|last_line$") + lines
        return Facts({kind: frame.with_columns(numbers) for kind, frame in self.frames.items()}) if lines else self

    @classmethod
    def merge(cls, parts: Iterable[Facts]) -> Facts:
        """The facts of all parts, in whatever order these are given."""
        by_kind: dict[str, list[pl.DataFrame]] = defaultdict(list)
        for part in parts:
            for kind, frame in part.frames.items():
                by_kind[kind].append(frame)
        return cls({kind: frames[0] if len(frames) == 1 else pl.concat(frames) for kind, frames in by_kind.items()})


class Notes:
    """Collects rows while blocks are scanned. `source` is the file whose lines are being read."""

    def __init__(self, source: int = 0) -> None:
        self.source = source
        self._rows: dict[str, list[tuple[object, ...]]] = defaultdict(list)
        self._sums: dict[str, dict[tuple[object, ...], list[int]]] = defaultdict(dict)
        self._frames: dict[str, list[pl.DataFrame]] = defaultdict(list)

    def at(self, source: int) -> Notes:
        """Itself, with rows to come assigned to a file."""
        self.source = source
        return self

    def add(self, kind: str, *row: object) -> None:
        """One row of a kind, in the order of its columns."""
        self._rows[kind].append((self.source, *row))

    def count(self, kind: str, line_no: int, *key: object, lines: int = 1) -> None:
        """More lines of the same key: kinds with columns line_no, key..., lines."""
        seen = self._sums[kind].setdefault((self.source, *key), [line_no, 0])
        seen[0] = min(seen[0], line_no)
        seen[1] += lines

    def add_frame(self, kind: str, frame: pl.DataFrame) -> None:
        """Rows that are a frame already."""
        schema = SCHEMAS[kind]
        if not frame.is_empty():
            is_so = frame.schema == schema
            self._frames[kind].append(frame if is_so else frame.select(schema.names()).cast(schema))

    def facts(self) -> Facts:
        """What was collected."""
        frames = dict(self._frames)
        for kind, rows in self._rows.items():
            frames.setdefault(kind, []).append(pl.DataFrame(rows, schema=SCHEMAS[kind], orient="row"))
        for kind, sums in self._sums.items():
            summed = [(source, line_no, *key, lines) for (source, *key), (line_no, lines) in sums.items()]
            frames.setdefault(kind, []).append(pl.DataFrame(summed, schema=SCHEMAS[kind], orient="row"))
        return Facts({kind: pl.concat(parts) for kind, parts in frames.items()})
