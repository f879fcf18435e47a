"""Write the files of NCCL's Inspector beside this file anew, with NVIDIA's own plugin and no GPU.

    git clone https://github.com/NVIDIA/nccl
    make -C nccl/plugins/profiler/inspector CUDA_HOME=CUDA
    python -m venv build/inspector
    build/inspector/bin/pip install pandas pyarrow duckdb matplotlib tqdm
    export LD_LIBRARY_PATH=CUDA/lib64
    build/inspector/bin/python tests/trackers/record_inspector.py nccl/plugins/profiler/inspector

The plugin learns of calls through NCCL's profiler interface, version 5 (`nccl/profiler_v5.h`), and of a GPU only its
number and UUID. So the calls are made up here, handed to the plugin as NCCL hands them, and what it measures, computes
and writes is its own. Without a driver, CUDA/lib64 needs a `libcuda.so` and `libcudart.so` with the five functions that
the plugin asks for (`cuDeviceGet`, `cuDeviceGetUuid`, `cuGetErrorString`, `cudaGetDevice`, `cudaGetErrorString`).

`inspector/NAME.log.gz` is a file of the plugin with the machine's name replaced, `NAME.json` its calls: those of
collectives as `parse_file` of the plugin's exporter reads them, which passes sends by, and sends as they were handed
over.
Recorded with the plugin of June 2026, format v4.0.
"""

# mypy: ignore-errors

from __future__ import annotations

import ctypes as c
import gzip
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent / "inspector"
COLL, P2P, KERNEL, STOPPED = 1 << 1, 1 << 2, 1 << 6, 22
ALWAYS = {"ENABLE": "1", "DUMP_THREAD_INTERVAL_MICROSECONDS": "500"}
WIDTHS = {"ncclFloat32": 4, "ncclBfloat16": 2, "ncclInt8": 1}


class Coll(c.Structure):
    _fields_ = (
        ("seq", c.c_uint64),
        ("func", c.c_char_p),
        ("send", c.c_void_p),
        ("receive", c.c_void_p),
        ("count", c.c_size_t),
        ("root", c.c_int),
        ("datatype", c.c_char_p),
        ("channels", c.c_uint8),
        ("warps", c.c_uint8),
        ("algo", c.c_char_p),
        ("proto", c.c_char_p),
        ("group", c.c_void_p),
    )


class P2p(c.Structure):
    _fields_ = (
        ("func", c.c_char_p),
        ("buffer", c.c_void_p),
        ("datatype", c.c_char_p),
        ("count", c.c_size_t),
        ("peer", c.c_int),
        ("channels", c.c_uint8),
        ("group", c.c_void_p),
    )


class Kernel(c.Structure):
    _fields_ = (("channel", c.c_uint8), ("timer", c.c_uint64))


class Kinds(c.Union):
    _fields_ = (("coll", Coll), ("p2p", P2p), ("kernel", Kernel))


class Event(c.Structure):
    _anonymous_ = ("of",)
    _fields_ = (("type", c.c_uint64), ("parent", c.c_void_p), ("rank", c.c_int), ("of", Kinds))


class State(c.Union):
    _fields_ = (("timer", c.c_uint64), ("size", c.c_size_t))


class Profiler(c.Structure):
    _fields_ = (
        ("name", c.c_char_p),
        (
            "init",
            c.CFUNCTYPE(
                c.c_int,
                c.POINTER(c.c_void_p),
                c.c_uint64,
                c.POINTER(c.c_int),
                c.c_char_p,
                c.c_int,
                c.c_int,
                c.c_int,
                c.c_void_p,
            ),
        ),
        ("start", c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(c.c_void_p), c.POINTER(Event))),
        ("stop", c.CFUNCTYPE(c.c_int, c.c_void_p)),
        ("record", c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.POINTER(State))),
        ("finalize", c.CFUNCTYPE(c.c_int, c.c_void_p)),
    )


class Rank:
    """A rank whose calls the plugin watches: communicators by name, calls of `ns` nanoseconds of the GPU's clock."""

    def __init__(self, plugin: str, *, rank: int, ranks: int, nodes: int) -> None:
        self.plugin = Profiler.in_dll(c.CDLL(plugin), "ncclProfiler_v5")
        self.rank, self.ranks, self.nodes = rank, ranks, nodes
        self.communicators: dict[str, c.c_void_p] = {}
        self.sent: list[dict] = []
        self.clock, self.calls = 1_000_000_000, 0
        self.ignored = c.CFUNCTYPE(None, c.c_int, c.c_ulong, c.c_char_p, c.c_int, c.c_char_p)(lambda *_message: None)

    def communicator(self, name: str) -> c.c_void_p:
        if name not in self.communicators:
            self.communicators[name], mask = c.c_void_p(), c.c_int()
            number = 0x7F8C496AE9F661 + len(self.communicators)
            self.plugin.init(
                c.byref(self.communicators[name]),
                number,
                c.byref(mask),
                name.encode(),
                self.nodes,
                self.ranks,
                self.rank,
                c.cast(self.ignored, c.c_void_p),
            )
        return self.communicators[name]

    def collective(self, name: str, op: str, datatype: str, count: int, *, ns: int, channels: int = 2) -> None:
        self.calls += 1
        event = Event(type=COLL, rank=self.rank)
        event.coll = Coll(
            seq=self.calls,
            func=op.encode(),
            count=count,
            datatype=datatype.encode(),
            channels=channels,
            warps=16,
            algo=b"RING",
            proto=b"SIMPLE",
        )
        self._run(name, event, ns, channels)

    def transfer(self, name: str, op: str, datatype: str, count: int, *, peer: int, ns: int, channels: int = 1) -> None:
        event = Event(type=P2P, rank=self.rank)
        event.p2p = P2p(func=op.encode(), datatype=datatype.encode(), count=count, peer=peer, channels=channels)
        self._run(name, event, ns, channels)
        size = count * WIDTHS[datatype]
        self.sent.append({"op": op, "message_bytes": size, "peer": peer, "time_us": ns // 1000, "rank": self.rank})

    def _run(self, name: str, event: Event, ns: int, channels: int) -> None:
        """A call, and its kernel on each channel; the GPU has no clock where `ns` is 0."""
        context, call = self.communicator(name), c.c_void_p()
        self.plugin.start(context, c.byref(call), c.byref(event))
        if not call:  # smaller than what the plugin watches
            return
        kernels = []
        for channel in range(channels):
            kernel, handle = Event(type=KERNEL, parent=call, rank=self.rank), c.c_void_p()
            kernel.kernel = Kernel(channel=channel, timer=self.clock if ns else 0)
            self.plugin.start(context, c.byref(handle), c.byref(kernel))
            kernels.append(handle)
        self.plugin.stop(call)
        for number, handle in enumerate(kernels):
            # The last channel ends last: the call takes as long as its slowest kernel.
            end = self.clock + ns - 1_000 * (channels - 1 - number) if ns else 0
            self.plugin.record(handle, STOPPED, c.byref(State(timer=end)))
            self.plugin.stop(handle)
        self.clock += ns + 10_000

    def finish(self) -> None:
        for context in self.communicators.values():
            self.plugin.finalize(context)


def data_parallel(of: Rank) -> None:
    for step in range(6):
        of.collective("DP Group 0", "AllReduce", "ncclFloat32", 1 << 20, ns=412_000 + 31_000 * step)
        of.collective("DP Group 0", "AllReduce", "ncclBfloat16", 1 << 22, ns=901_000 - 17_000 * step, channels=4)


def sharded(of: Rank) -> None:
    for step in range(4):
        of.collective("", "AllGather", "ncclBfloat16", 1 << 18, ns=205_000 + 9_000 * step)
        of.collective("", "ReduceScatter", "ncclFloat32", 1 << 18, ns=340_000 + 1_000 * step)
        of.collective("TP Group 3", "AllReduce", "ncclBfloat16", 1 << 16, ns=61_000 + 500 * step)


def pipeline(of: Rank) -> None:
    for step in range(3):
        of.transfer("PP Group 1", "Send", "ncclBfloat16", 1 << 21, peer=of.rank + 1, ns=150_000 + 20_000 * step)
        of.transfer("PP Group 1", "Recv", "ncclBfloat16", 1 << 21, peer=of.rank + 1, ns=170_000 - 5_000 * step)
        of.collective("DP Group 0", "Broadcast", "ncclInt8", 1 << 16, ns=44_000)


def small(of: Rank) -> None:
    """Most calls are below the 8 KiB that the plugin watches."""
    for step in range(8):
        of.collective("DP Group 0", "AllReduce", "ncclFloat32", 64 << step, ns=20_000 + 3_000 * step, channels=1)


RECORDINGS = {
    "data_parallel": (data_parallel, {"rank": 2, "ranks": 8, "nodes": 1}, {}),
    "sharded": (sharded, {"rank": 11, "ranks": 16, "nodes": 2}, {}),
    "pipeline": (pipeline, {"rank": 0, "ranks": 4, "nodes": 4}, {"ENABLE_P2P": "1"}),
    "verbose": (data_parallel, {"rank": 0, "ranks": 2, "nodes": 1}, {"DUMP_VERBOSE": "1"}),
    "small": (small, {"rank": 5, "ranks": 8, "nodes": 1}, {}),
    "cpu_clock": (
        lambda of: [of.collective("DP Group 0", "AllReduce", "ncclFloat32", 1 << 20, ns=0) for _ in range(3)],
        {"rank": 1, "ranks": 2, "nodes": 1},
        {"REQUIRE_KERNEL_TIMING": "0"},
    ),
}


def of_exporter(folder: Path, log: Path, scratch: Path) -> list[dict]:
    """The calls of collectives as the exporter keeps them in Parquet."""
    sys.path.insert(0, str(folder / "exporter" / "example"))
    import pandas
    import perf_summary_exporter

    perf_summary_exporter.parse_file(str(log), scratch)
    found = scratch / f"{log.stem}.parquet"
    return json.loads(pandas.read_parquet(found).to_json(orient="records")) if found.exists() else []


def main() -> None:
    folder, *name = sys.argv[1:]
    plugin = Path(folder).resolve()
    if name:  # the plugin keeps its settings for the life of a process
        run, about, _ = RECORDINGS[name[0]]
        of = Rank(str(plugin / "libnccl-profiler-inspector.so"), **about)
        run(of)
        time.sleep(0.5)  # a thread of the plugin writes every 500 microseconds
        of.finish()
        print(json.dumps(of.sent))  # noqa: T201 - its answer to the process that started it
        return
    HERE.mkdir(exist_ok=True)
    for each, (_, _, variables) in RECORDINGS.items():
        with tempfile.TemporaryDirectory() as scratch:
            asked = {
                f"NCCL_INSPECTOR_{name}": value for name, value in {**ALWAYS, "DUMP_DIR": scratch, **variables}.items()
            }
            command = [sys.executable, __file__, str(plugin), each]
            done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=True)
            (log,) = Path(scratch).glob("*.log")
            log.write_text(log.read_text().replace(socket.gethostname(), "node-3"))
            own = {"collectives": of_exporter(plugin, log, Path(scratch)), "transfers": json.loads(done.stdout)}
            (HERE / f"{each}.log.gz").write_bytes(gzip.compress(log.read_bytes(), mtime=0))
        (HERE / f"{each}.json").write_text(json.dumps(own) + "\n")


if __name__ == "__main__":
    main()
