"""Files that are cheap to write and expensive to read, of every kind: what limits of time and memory are tried with."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import zipfile
from collections.abc import Callable

_EQUAL_HASH = 2**61 - 1
"""Python's hash of an integer is its remainder by this."""


def _text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def _entries(records: bytes) -> bytes:
    """A flight recorder's dump in protocol 2 whose list of entries is made of these opcodes."""
    return b"\x80\x02}(" + _text("entries") + b"](" + records + b"eu."


def _bare(value: object) -> bytes:
    """Opcodes of a value in protocol 2, without header and STOP; the first slot of the memo is the value itself."""
    return pickle.dumps(value, 2)[2:-1]


def _equal_keys(name: str, count: int) -> bytes:
    keys = ((_EQUAL_HASH * number).to_bytes(16, "little", signed=True) for number in range(1, count))
    pairs = b"".join(b"\x8a\x10" + key + b"N" for key in keys)
    return b"\x80\x02}(" + _text(name) + b"](}(" + pairs + b"ueu."


def _long_record(count: int) -> bytes:
    """One record with long texts, referred to very often."""
    record = {
        "record_id": 1,
        "state": "s" * 1900,
        "input_dtypes": ["d" * 2000] * 64,
        "output_dtypes": ["e" * 2000] * 64,
    }
    return _entries(_bare(record) + b"h\x00" * count)


def _archive(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("archive/data.pkl", data)
    return out.getvalue()


def _merged(levels: int) -> str:
    """Each mapping merges the one before twice: the last has two to the power of `levels` entries."""
    rest = (f"a{level}: &a{level}\n  <<: [*a{level - 1}, *a{level - 1}]\n" for level in range(1, levels))
    return "a0: &a0 {x: 1}\n" + "".join(rest)


def _colliding(count: int) -> str:
    return "{" + ", ".join(f"{_EQUAL_HASH * number}: 0" for number in range(1, count)) + "}"


HOSTILE: dict[str, tuple[str, Callable[[int], bytes | str]]] = {
    "a record referred to very often": ("a/nccl_trace_rank_0", lambda n: _long_record(n // 4)),
    "a million empty records": ("a/nccl_trace_rank_0", lambda n: _entries(b"}" * n)),
    "keys of one hash": ("a/nccl_trace_rank_0", lambda n: _equal_keys("entries", n // 20)),
    "keys of one hash in a snapshot": ("a/snapshot.pickle", lambda n: _equal_keys("segments", n // 20)),
    "a zip that unpacks far": ("a/snapshot.pickle", lambda n: _archive(b"\x80\x02](" + b"N" * (100 * n) + b"e.")),
    "records in JSON": ("a/nccl_trace_rank_0.json", lambda n: '{"entries": [' + "{}," * (n // 3) + "{}]}"),
    "JSON that nests deep": ("a/config.json", lambda n: '{"a":' * (n // 5)),
    "a log of packed line feeds": ("a/train.log.gz", lambda n: gzip.compress(b"\n" * (500 * n))),
    "a configuration that unpacks far": ("a/config.json", lambda n: gzip.compress(b" " * (500 * n))),
    "a table that unpacks far": ("a/metrics.csv", lambda n: gzip.compress(b"step,loss\n" + b"1,2\n" * (100 * n))),
    "samples as unfinished JSON": (
        "a/gpu.json",
        lambda n: '{"card0":{"VRAM Total Used Memory (B)":"1"}}\n' + "[1,\n" * (n // 4),
    ),
    "YAML that merges": ("a/hparams.yaml", lambda _: _merged(26)),
    "YAML that nests deep": ("a/hparams.yaml", lambda n: "[" * n),
    "YAML with dashes": ("a/default_config.yaml", lambda n: "- " * (n // 2)),
    "YAML with keys of one hash": ("a/hparams.yaml", lambda n: _colliding(n // 10)),
    "YAML with a number to the base of 60": ("a/hparams.yaml", lambda n: "a: " + "1:" * (n // 2) + "1"),
    "a table with very many columns": ("a/metrics.csv", lambda n: "step,loss," + "," * n + "\n1,2\n"),
    "a table whose rows are short": (
        "a/metrics.csv",
        lambda n: "step,loss," + ",".join(map(str, range(n // 100))) + "\n" + "1\n" * (n // 4),
    ),
}
"""By what it is: the file's name, and its content from a measure of its size in bytes."""
