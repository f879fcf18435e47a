"""Facts read from blocks of lines: a frame per kind, of many files together. The map's result and the fold's input."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import polars as pl

PARTS = ("kernels", "alloc", "bootstrap", "allgathers", "topo", "graphs", "connections", "rest")
"""Parts of the initialisation time, as NCCL names them (src/init.cc, "Init timings")."""

_TYPES: dict[str, pl.DataType | type[pl.DataType]] = {
    "int": pl.Int64,
    "str": pl.String,
    "float": pl.Float64,
    "bool": pl.Boolean,
    "ranks": pl.List(pl.Int32),
    "bits": pl.UInt64,
}
_PROCESS = "line_no:int host:str pid:int"
_THREAD = f"{_PROCESS} tid:int"
_COLUMNS = {
    # host:pid as printed; clean: how often at the beginning of a line, where nothing can be glued to it
    "process": "host:str pid:int lines:int clean:int",
    "version": "line_no:int flavour:str version:str",
    "init": f"{_THREAD} state:str api:str comm:str rank:int nranks:int cuda_dev:int nvml_dev:int bus_id:str"
    " comm_hash:str parent:str split_count:int color:int",
    "timing": f"{_THREAD} rank:int nranks:int total:float {' '.join(f'{part}:float' for part in PARTS)}",
    "shape": f"{_THREAD} comm:str rank:int nranks:int nnodes:int",
    "ring": f"{_THREAD} channels:int order:str",
    "channels": f"{_THREAD} coll:int collnet:int nvls:int p2p:int per_peer:int",
    "network": f"{_THREAD} network:str",
    "link": f"{_THREAD} comm:str nranks:int rank_from:int rank_to:int direction:str transport:str device:str lines:int",
    # ranks that send from each to the next one; of_ranks: a ring, closed if the communicator is of that size;
    # channels: a bit for each of 64, of which the first is the number 64 * sixty_fours
    "graph": f"{_THREAD} graph:str ranks:ranks of_ranks:int sixty_fours:int channels:bits",
    "device": f"{_PROCESS} network:str number:int name:str port:str layer:str lines:int",
    "tuning": "line_no:int op:str size:int algorithm:str protocol:str channels:str lines:int",
    "coll": f"{_PROCESS} comm:str op:str datatype:int count:int redop:int root:int nranks:int lines:int last_op:int"
    " last_line:int",
    "warn": f"{_PROCESS} text:str lines:int",
    "env": "line_no:int name:str value:str lines:int",
    "bench_row": "line_no:int size:int count:int datatype:str reduction:str figures:str is_torn:bool",
    "bench_half": "line_no:int figures:str",
    "bench_mark": "line_no:int mark:str value:str",
    "watchdog": "line_no:int kind:str rank:int printed_rank:int op:str seq:int numel_in:int numel_out:int"
    " timeout_ms:int ran_for_ms:int group:str enqueued:int completed:int stamp:str text:str",
    "tally": "name:str lines:int",
}


def _schema(columns: str) -> pl.Schema:
    """
    >>> dict(_schema("host:str"))
    {'source': Int64, 'host': String}
    """
    names = (column.split(":") for column in f"source:int {columns}".split())
    return pl.Schema({name: _TYPES[of] for name, of in names})


SCHEMAS: Mapping[str, pl.Schema] = {kind: _schema(columns) for kind, columns in _COLUMNS.items()}
"""Columns of each kind of facts; `source` is the number of the file."""
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
