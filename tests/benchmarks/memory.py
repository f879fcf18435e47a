"""Allocator snapshots of any size, and what reading them costs, beside unpickling alone and PyTorch's own viewer.

The snapshot is written event by event, so that one of a gigabyte needs no memory to be made: a simulated training step
in its steady state, again and again, 170 bytes an event. Stacks are new lists of known frames two times out of three,
as in real files. `python -m tests.benchmarks.memory FILE EVENTS` writes one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import polars as pl

from sweepscope.pipeline.io.sandbox import child_command
from sweepscope.pipeline.memory.isolation import ENVIRONMENT, WORK, SnapshotLimits
from tests.pipeline.memory.allocator import Allocator, Frames, train

SIZES = (100_000, 1_000_000)
DEPTH = 36
_ONCE = "sweepscope.pipeline.io.sandbox_child:run_once"
_LOAD = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))"
_VIEWER = "import pickle, sys; from torch.cuda import _memory_viz as v; v.{what}(pickle.load(open(sys.argv[1], 'rb')))"


class Writer:
    """Opcodes of protocol 4 as Python's pickler writes them: short texts and containers go into the memo."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out, self._size = out, 0
        self._texts: dict[str, bytes] = {}
        self._frames: dict[int, bytes] = {}
        self.newest_list = b""

    def write(self, *parts: bytes) -> None:
        """Opcodes as they are."""
        self._out.write(b"".join(parts))

    def memoized(self) -> bytes:
        """MEMOIZE; `last` recalls what was memoized."""
        self._size += 1
        return b"\x94"

    def last(self) -> bytes:
        """The opcode that recalls the newest slot."""
        index = self._size - 1
        return b"h" + bytes([index]) if index < 256 else b"j" + index.to_bytes(4, "little")

    def text(self, value: str) -> bytes:
        """A text, in full the first time."""
        if value in self._texts:
            return self._texts[value]
        data = value.encode()
        written = b"\x8c" + bytes([len(data)]) + data + self.memoized()
        self._texts[value] = self.last()
        return written

    @staticmethod
    def integer(value: int) -> bytes:
        """An integer in its shortest form."""
        if 0 <= value < 1 << 8:
            return b"K" + bytes([value])
        if 0 <= value < 1 << 16:
            return b"M" + value.to_bytes(2, "little")
        if -(1 << 31) <= value < 1 << 31:
            return b"J" + value.to_bytes(4, "little", signed=True)
        size = value.bit_length() // 8 + 1
        return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)

    def value(self, value: Any) -> bytes:
        """A plain value; frames are dicts that are shared."""
        if isinstance(value, bool | int):
            return self.integer(value) if type(value) is int else b"\x88" if value else b"\x89"
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, tuple):
            return b"".join(map(self.value, value)) + b"\x86" + self.memoized()
        return self._list(value) if isinstance(value, list) else self._dict(value)

    def _list(self, value: list[Any]) -> bytes:
        head = b"]" + self.memoized()
        reference = self.last()
        written = head + b"(" + b"".join(map(self.value, value)) + b"e"
        self.newest_list = reference
        return written

    def _dict(self, value: dict[str, Any]) -> bytes:
        if id(value) in self._frames:
            return self._frames[id(value)]
        head = b"}" + self.memoized()
        if "filename" in value:
            self._frames[id(value)] = self.last()
        return head + b"(" + b"".join(self.value(key) + self.value(item) for key, item in value.items()) + b"u"


def steady_step() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A snapshot after some steps, and the events of the last step: it leaves the allocator as it found it."""
    two, three = Allocator(), Allocator()
    train(two, steps=2)
    train(three, steps=3)
    return three.snapshot(), three.trace[len(two.trace) :]


def write_snapshot(path: Path, events: int) -> int:
    """Write a snapshot with `events` events for device 0; its size in bytes."""
    snapshot, step = steady_step()
    outer = [{"name": f"call_{at}", "filename": "/lib/torch/nn/modules/module.py", "line": at} for at in range(DEPTH)]
    with path.open("wb") as out:
        writer = Writer(out)
        writer.write(b"\x80\x04}", writer.memoized(), b"(")
        for name in ("segments", "allocator_settings", "external_annotations"):
            writer.write(writer.text(name), writer.value(snapshot[name]))
        writer.write(writer.text("device_traces"), b"]", writer.memoized(), b"(]", writer.memoized(), b"(")
        for event in _repeated(step, events):
            writer.write(_encoded(writer, event, outer))
        writer.write(b"eeu.")
    return path.stat().st_size


def _repeated(step: list[dict[str, Any]], events: int) -> Iterator[dict[str, Any]]:
    """The step again and again, ending with a whole one."""
    time_us = 1_700_000_000_000_000
    for at in range(events):
        time_us += 5
        yield step[(at - events) % len(step)] | {"time_us": time_us}


def _encoded(writer: Writer, event: dict[str, Any], outer: Frames) -> bytes:
    """An entry of a trace; a free_completed shares the list of its free_requested."""
    head = b"}" + writer.memoized() + b"("
    fields = b"".join(writer.text(key) + writer.value(event[key]) for key in event if key != "frames")
    name = writer.text("frames")
    if event["action"] == "free_completed":
        return head + fields + name + writer.newest_list + b"u"
    return head + fields + name + writer.value([*event["frames"], *outer][:DEPTH]) + b"u"


# A small parent: a child's peak counts from what it was forked from.
_MEASURE = """
import os, resource, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status), file=sys.stderr)
"""


def measured(command: list[str], stdin: Path | None = None) -> tuple[float, float, bool]:
    """CPU seconds and peak memory in MB of a process, and whether it ended well."""
    with stdin.open("rb") if stdin else open(os.devnull, "rb") as given:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _MEASURE, *command],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT},
            text=True,
            check=True,
        )
    seconds, peak, exit_code = done.stderr.split()[-3:]
    return float(seconds), float(peak), int(exit_code) == 0


# CPU seconds of all forks and their parent, for each of several files that one ingest reads.
_MANY = """
import resource, sys
from pathlib import Path
from sweepscope.pipeline.memory.isolation import SANDBOX, SnapshotLimits, analyse_limited
for _ in range(int(sys.argv[2])):
    with Path(sys.argv[1]).open("rb") as file:
        analyse_limited(iter(lambda: file.read(1 << 20), b""), SnapshotLimits())
SANDBOX.close()
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print((usage.ru_utime + usage.ru_stime) / int(sys.argv[2]), usage.ru_maxrss / 1024)
"""
MANY_FILES = 10


def measured_many(path: Path) -> tuple[float, float]:
    """CPU seconds for each of MANY_FILES readings of a file in one process, and the peak of any fork in MB."""
    command = [sys.executable, "-c", _MANY, str(path), str(MANY_FILES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(done[0]), float(done[1])


def costs(scratch: Path, sizes: tuple[int, ...] = SIZES) -> pl.DataFrame:
    """CPU seconds and peak memory over the bare interpreter, ours and others', for each size."""
    bare_s, bare_mb, _ = measured([sys.executable, "-I", "-S", "-c", "pass"])
    has_torch = importlib.util.find_spec("torch") is not None
    once = child_command(_ONCE, WORK, json.dumps(vars(SnapshotLimits())))
    rows = []
    for events in sizes:
        path = scratch / f"snapshot_{events}.pickle"
        size = write_snapshot(path, events) / 1e6
        readers: list[tuple[str, list[str], Path | None]] = [
            ("sweepscope: read, replay, attribute", once, path),
            ("pickle.load, nothing more", [sys.executable, "-c", _LOAD, str(path)], None),
        ]
        if has_torch:
            for what in ("segsum", "trace"):
                viewer = [sys.executable, "-c", _VIEWER.format(what=what), str(path)]
                readers.append((f"torch _memory_viz {what}", viewer, None))
        for name, reader, stdin in readers:
            best = min(measured(reader, stdin) for _ in range(3 if events < 500_000 else 1))
            rows.append((f"{events:,}", round(size), name, best[0] - bare_s, round(best[1] - bare_mb), best[2]))
        if events < 500_000:
            each_s, peak_mb = measured_many(path)
            name = f"sweepscope: each of {MANY_FILES} files"
            rows.append((f"{events:,}", round(size), name, each_s, round(peak_mb - bare_mb), True))
        path.unlink()
    columns = ["events", "MB", "reader", "CPU s", "peak MB", "ended well"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return frame if has_torch else frame.with_columns(pl.lit("torch is not installed: not compared").alias("note"))


def main() -> None:
    """Write the file that is asked for, or print the table."""
    if len(sys.argv) == 3:
        sys.stdout.write(f"{write_snapshot(Path(sys.argv[1]), int(sys.argv[2])):,} bytes\n")
        return
    with tempfile.TemporaryDirectory() as place, pl.Config(tbl_rows=20, fmt_str_lengths=60, tbl_width_chars=140):
        sys.stdout.write(f"{costs(Path(place))}\n")


if __name__ == "__main__":
    main()
