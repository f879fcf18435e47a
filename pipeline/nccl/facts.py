"""What blocks of lines say: a few small frames by kind. The only thing that the map hands to the fold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

_I, _S, _F = pl.Int64, pl.String, pl.Float64
_THREAD = {"line_no": _I, "host": _S, "pid": _I, "tid": _I}
PARTS = ("kernels", "alloc", "bootstrap", "allgathers", "topo", "graphs", "connections", "rest")
"""Parts of the initialisation time, as NCCL names them (src/init.cc, "Init timings")."""

SCHEMAS: Mapping[str, pl.Schema] = {
    name: pl.Schema(columns)
    for name, columns in {
        # host:pid as printed; how often at the beginning of a line, where nothing can be glued to it
        "process": {"host": _S, "pid": _I, "lines": _I, "clean": _I},
        "version": {"line_no": _I, "flavour": _S, "version": _S},
        "init": _THREAD | {
            "state": _S, "api": _S, "comm": _S, "rank": _I, "nranks": _I, "cuda_dev": _I, "nvml_dev": _I,
            "bus_id": _S, "comm_hash": _S, "parent": _S, "split_count": _I, "color": _I,
        },
        "timing": _THREAD | {"rank": _I, "nranks": _I, "total": _F, **dict.fromkeys(PARTS, _F)},
        "shape": _THREAD | {"comm": _S, "rank": _I, "nranks": _I, "nnodes": _I},
        "ring": _THREAD | {"channels": _I, "order": _S},
        "channels": _THREAD | {"coll": _I, "collnet": _I, "nvls": _I, "p2p": _I, "per_peer": _I},
        "network": _THREAD | {"network": _S},
        "link": _THREAD | {
            "comm": _S, "rank_from": _I, "rank_to": _I, "direction": _S, "transport": _S, "device": _S, "epoch": _I,
            "lines": _I,
        },
        "graph": _THREAD | {"text": _S, "is_cut": pl.Boolean},
        "device": {
            "line_no": _I, "host": _S, "pid": _I, "network": _S, "number": _I, "name": _S, "port": _S, "layer": _S,
            "lines": _I,
        },
        "tuning": {"line_no": _I, "op": _S, "size": _I, "algorithm": _S, "protocol": _S, "channels": _S, "lines": _I},
        "coll": {
            "line_no": _I, "host": _S, "pid": _I, "comm": _S, "op": _S, "datatype": _I, "count": _I, "redop": _I,
            "root": _I, "nranks": _I, "lines": _I, "last_op": _I, "last_line": _I,
        },
        "warn": {"line_no": _I, "host": _S, "pid": _I, "text": _S, "lines": _I},
        "env": {"line_no": _I, "name": _S, "value": _S, "lines": _I},
        "bench_row": {
            "line_no": _I, "size": _I, "count": _I, "datatype": _S, "reduction": _S, "rest": _S, "is_torn": pl.Boolean,
        },
        "bench_rest": {"line_no": _I, "rest": _S},
        "bench_mark": {"line_no": _I, "mark": _S, "value": _S},
        "watchdog": {
            "line_no": _I, "kind": _S, "rank": _I, "printed_rank": _I, "op": _S, "seq": _I, "numel_in": _I,
            "numel_out": _I, "timeout_ms": _I, "ran_for_ms": _I, "group": _S, "enqueued": _I, "completed": _I,
            "stamp": _S, "text": _S,
        },
        "tally": {"name": _S, "lines": _I},
    }.items()
}  # fmt: skip


_EMPTY = {kind: pl.DataFrame(schema=schema) for kind, schema in SCHEMAS.items()}


@dataclass(frozen=True)
class Facts:
    """Frames by kind, of one or more blocks of one file; kinds without rows are left out."""

    frames: Mapping[str, pl.DataFrame]

    def __getitem__(self, kind: str) -> pl.DataFrame:
        found = self.frames.get(kind)
        return _EMPTY[kind] if found is None else found

    def __bool__(self) -> bool:
        return bool(self.frames)

    @classmethod
    def merge(cls, parts: Iterable[Facts]) -> Facts:
        """Blocks of one file as if they had been one. The order of the parts does not matter."""
        by_kind: dict[str, list[pl.DataFrame]] = defaultdict(list)
        for part in parts:
            for kind, frame in part.frames.items():
                by_kind[kind].append(frame)
        return cls({kind: frames[0] if len(frames) == 1 else pl.concat(frames) for kind, frames in by_kind.items()})


class Notes:
    """Collects rows while a block is scanned."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[object, ...]]] = defaultdict(list)
        self._sums: dict[str, dict[tuple[object, ...], list[int]]] = defaultdict(dict)
        self._frames: dict[str, list[pl.DataFrame]] = defaultdict(list)

    def add(self, kind: str, *row: object) -> None:
        """One row of a kind, in the order of its columns."""
        self._rows[kind].append(row)

    def count(self, kind: str, line_no: int, *key: object, lines: int = 1) -> None:
        """One more line of the same key: kinds with columns line_no, key..., lines."""
        seen = self._sums[kind].setdefault(key, [line_no, 0])
        seen[1] += lines

    def add_frame(self, kind: str, frame: pl.DataFrame) -> None:
        """Rows that are a frame already."""
        self._frames[kind].append(frame)

    def facts(self) -> Facts:
        """What was collected."""
        frames = dict(self._frames)
        for kind, rows in self._rows.items():
            frames.setdefault(kind, []).append(pl.DataFrame(rows, schema=SCHEMAS[kind], orient="row"))
        for kind, sums in self._sums.items():
            summed = [(line_no, *key, lines) for key, (line_no, lines) in sums.items()]
            frames.setdefault(kind, []).append(pl.DataFrame(summed, schema=SCHEMAS[kind], orient="row"))
        return Facts({kind: pl.concat(parts) for kind, parts in frames.items()})
