"""`sweepscope memory [FILE...]`: analysis of memory artefacts without a store; without a file, of the store."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import polars as pl

from sweepscope.pipeline.commands.counts import count
from sweepscope.pipeline.commands.output import say_read, say_result, table
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import InputError, UsageError
from sweepscope.pipeline.io.files import list_files
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.memory import report
from sweepscope.pipeline.store.home import Home

Rows = list[dict[str, Any]]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="allocator snapshot (pickle, JSON, torch.save, viewer's HTML), memory timeline, profiler trace, "
        "memory_stats, memory_summary, samples of nvidia-smi, DCGM, rocm-smi and others; packed or not. None: ask the "
        "store",
    )
    parser.add_argument("--against", metavar="FILE", help="rank what differs at the peak from that of this file")
    parser.add_argument(
        "--run", dest="run_id", metavar="ID", help="of the store: one run from its estimate to the card"
    )
    parser.add_argument("--sweep", metavar="NAME", help="of the store: one sweep's fragmentation, terms and failures")
    parser.add_argument("--device", metavar="N", type=int, help="only this device")
    parser.add_argument("--top", metavar="K", type=count, default=10, help="number of source lines (default: 10)")


def _run(args: argparse.Namespace) -> int:
    if args.top < 0:
        raise UsageError(f"--top {args.top} is below 0. Give a number of lines.")
    if not args.files:
        return _run_store(args)
    if args.run_id or args.sweep:
        raise UsageError("--run and --sweep ask the store; give them without a FILE.")
    against = _rows(_read(args.against), "memory_at_peak", args.device) if args.against else None
    files = [_findings(path, _read(path), device=args.device, top=args.top, against=against) for path in args.files]
    text = "\n\n".join(_text(file, args.against) for file in files)
    say_read({"against": args.against, "files": files}, text, as_json=args.json)
    return 0


def _run_store(args: argparse.Namespace) -> int:
    if args.against or args.device is not None:
        raise UsageError("--against and --device compare and pick within files; give a FILE.")
    if args.run_id and args.sweep:
        raise UsageError("--run and --sweep exclude each other. Give one of them.")
    from sweepscope.pipeline.commands import stored_memory

    home = Home.resolve(args.home, for_writing=False)
    if args.run_id:
        run = stored_memory.memory_of_run(home, args.run_id)
        say_result(run, stored_memory.run_text(run), as_json=args.json)
    else:
        sweep = stored_memory.memory_of_sweep(home, args.sweep)
        say_result(sweep, stored_memory.sweep_text(sweep), as_json=args.json)
    return 0


def _read(path: str) -> Mapping[str, pl.DataFrame]:
    """Frames by table. Raises InputError for another kind of file, UsageError where `path` is not one file."""
    from sweepscope.pipeline.io.meter import metered
    from sweepscope.pipeline.memory.sources import read_memory_file  # numpy and the readers: only when they are needed

    found = list(list_files(path))
    if [entry.path for entry in found if entry.is_file] == [] or len(found) != 1:
        raise UsageError(f"{path} is not one file. Give a file, or ingest the directory.")
    reader = Reader(found[0].path)
    try:
        with metered(path, lambda: reader.unpacked_bytes):
            read = read_memory_file(reader.path, reader.chunks(), {"run_dir": None, "sweep": None})
    except ValueError as error:
        raise InputError(f"{path} cannot be read as a memory artefact: {error}.") from error
    if read.skipped:
        raise InputError(f"{path}: {read.skipped}. Give an allocator snapshot or another file that `--help` names.")
    return read.tables


def _rows(tables: Mapping[str, pl.DataFrame], name: str, device: int | None) -> Rows:
    """Rows of a table about one device, or about all."""
    if name not in tables:
        return []
    frame = tables[name]
    return (frame if device is None else frame.filter(pl.col("device") == device)).to_dicts()


def _findings(
    path: str, tables: Mapping[str, pl.DataFrame], *, device: int | None, top: int, against: Rows | None
) -> dict[str, Any]:
    """Results of one file, as `--json` prints them; the text is made from them.

    Args:
        path: of the file.
        tables: its rows, by table.
        device: the only device to show; None: all.
        top: number of source lines.
        against: `memory_at_peak` rows of the file to compare with.
    """
    devices = []
    for row in _rows(tables, "memory_snapshots", device):
        groups = [group for group in _rows(tables, "memory_at_peak", None) if group["device"] == row["device"]]
        compared: dict[str, Any] = {"verdict": _verdict(row, groups)}
        if against is not None:
            theirs = [group for group in against if device is not None or group["device"] == row["device"]]
            compared |= {"differences": report.differences(groups, theirs, top)}
        devices.append(
            {"summary": row, "categories": report.categories(groups), "top": report.top(groups, top), **compared}
        )
    samples = tables.get("gpu_samples")
    if not devices and samples is None:
        raise UsageError(f"{path} has nothing about device {device}. Leave out --device to see what it has.")
    return {"path": path, "devices": devices, "gpu_samples": [] if samples is None else _per_gpu(samples)}


def _verdict(row: Mapping[str, Any], groups: Rows) -> dict[str, str] | None:
    """Why an allocation failed on a device; None where none did."""
    if not row["oom_events"]:
        return None
    from sweepscope.pipeline.commands.stored_memory import file_verdict

    return file_verdict(row, groups)


def _per_gpu(samples: pl.DataFrame) -> Rows:
    """A row per GPU: how often and when it was sampled, and what it used."""
    return (
        samples.group_by("host", "gpu_index", "gpu_uuid", "accelerator")
        .agg(
            samples=pl.len(),
            first_at=pl.col("ts").min(),
            last_at=pl.col("ts").max(),
            mem_used_min_bytes=pl.col("mem_used_bytes").min(),
            mem_used_max_bytes=pl.col("mem_used_bytes").max(),
            mem_total_bytes=pl.col("mem_total_bytes").max(),
            gpu_utilisation_mean=pl.col("gpu_utilisation").mean(),
        )
        .sort("host", "gpu_index", "gpu_uuid", "accelerator")
        .to_dicts()
    )


def _text(file: Mapping[str, Any], against: str | None) -> str:
    """`_findings` of one file for people; `against` is the name of the other file."""
    devices = [line for device in file["devices"] for line in _device_lines(device, against)]
    return "\n".join([str(file["path"]), *devices, *(_gpu_line(gpu) for gpu in file["gpu_samples"])])


def _device_lines(device: Mapping[str, Any], against: str | None) -> list[str]:
    row = device["summary"]
    name = "CPU" if row["device"] == -1 else "device unknown" if row["device"] is None else f"device {row['device']}"
    lines = [f"\n{name}\n{table(report.summary_lines(row))}"]
    if device["verdict"]:
        lines.append(f"{device['verdict']['meaning']}: {device['verdict']['verdict_evidence']}")
    whole = sum(category["bytes"] for category in device["categories"])
    if whole:
        lines.append("\nalive at the peak")
        lines += [
            f"{category['share']:6.1%} {report.size(category['bytes']):>10}  {category['category']}"
            for category in device["categories"]
        ]
    if device["top"]:
        lines += ["\nby source line", *report.group_lines(device["top"], whole)]
    if against is not None:
        differences = report.difference_lines(device["differences"])
        lines += [f"\nagainst {against}", *(differences or ["the same groups of blocks"])]
    return lines


def _gpu_line(gpu: Mapping[str, Any]) -> str:
    name = " ".join(str(part) for part in (gpu["host"], gpu["accelerator"], gpu["gpu_uuid"]) if part)
    index = "" if gpu["gpu_index"] is None else f" {gpu['gpu_index']}"
    return (
        f"GPU{index} {name}: {gpu['samples']:,} samples, {report.size(gpu['mem_used_min_bytes'])} to "
        f"{report.size(gpu['mem_used_max_bytes'])} in use of {report.size(gpu['mem_total_bytes'])}"
    )


VERB = Verb(
    name="memory",
    description="Read memory artefacts as ingest does and print their contents, without a store: levels, fragmentation "
    "and its parts, failures, and the blocks that were alive at the peak by use and source line.",
    add_arguments=_add_arguments,
    run=_run,
)
