"""NCCL tables summarised in a few lines per file for the terminal, and as values for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

Tables = Mapping[str, pl.DataFrame]
_LABEL = 13
_MOST = 5


def as_text(tables: Tables) -> str:
    """One paragraph per file with NCCL content, and one per set of dumps; facts that a file lacks are left out."""
    paragraphs = []
    for path in _paths(tables):
        lines = [path, *(f"  {label:<{_LABEL}}{text}".rstrip() for label, text in _lines(_of(tables, path)))]
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs)


def as_values(tables: Tables) -> list[dict[str, Any]]:
    """Per file: the row of `nccl_files` and the rows of the other tables by name, without what every row repeats."""
    values = []
    for path in _paths(tables):
        file_tables = _of(tables, path)
        rows = {
            name: frame.drop("source_path", "run_dir", strict=False).to_dicts()
            for name, frame in file_tables.items()
            if name not in ("nccl_files", "flight_records")
        }
        file = file_tables["nccl_files"].to_dicts()
        dumps = file_tables["flight_records"].height
        values.append({"path": path, "file": file[0] if file else None, "flight_records": dumps, **rows})
    return values


def human_bytes(size: float) -> str:
    """A size in binary units, three digits.

    >>> human_bytes(0), human_bytes(1536), human_bytes(268435456)
    ('0 B', '1.5 KiB', '256 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.3g} {unit}" if size < 1000 else f"{size:,.0f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


def _paths(tables: Tables) -> list[str]:
    paths = [path for name in ("nccl_files", "nccl_hangs", "flight_records") for path in tables[name]["source_path"]]
    return list(dict.fromkeys(paths))


def _of(tables: Tables, path: str) -> dict[str, pl.DataFrame]:
    return {name: frame.filter(pl.col("source_path") == path) for name, frame in tables.items()}


def _lines(tables: Tables) -> Iterator[tuple[str, str]]:
    for row in tables["nccl_files"].iter_rows(named=True):
        yield (
            "library",
            _joined(
                " ".join(filter(None, [row["nccl_flavour"], row["nccl_version"]])),
                _counted(row["nranks_max"], "rank"),
                _counted(row["num_nodes"], "node"),
                _counted(row["num_communicators"], "communicator"),
                _counted(row["num_channels"], "channel"),
            ),
        )
        if row["networks"]:
            yield "network", row["networks"]
    yield from _devices(tables["nccl_devices"])
    yield from _transports(tables["nccl_links"])
    yield from _init(tables["nccl_communicators"])
    yield from _collectives(tables["nccl_collectives"])
    yield from _tuning(tables["nccl_tuning"])
    yield from _bandwidth(tables["nccl_bench"], tables["nccl_files"])
    yield from _warnings(tables["nccl_warnings"])
    if tables["flight_records"].height:
        dump = tables["flight_records"]
        yield "dump", f"rank {dump['rank'][0]}, {_counted(dump.height, 'record')}, format {dump['dump_version'][0]}"
    yield from _hangs(tables["nccl_hangs"])
    if "nccl_findings" in tables:
        yield from _findings(tables["nccl_findings"])
    for row in tables["nccl_files"].iter_rows(named=True):
        if row["nccl_lines"]:
            yield (
                "lines",
                (
                    f"{row['nccl_lines']:,} of NCCL, {row['nccl_lines_other']:,} of them not read for facts, "
                    f"{row['nccl_lines_damaged']:,} cut or glued"
                ),
            )


def _transports(links: pl.DataFrame) -> Iterator[tuple[str, str]]:
    counted = (
        links.group_by("transport").agg(pl.len().alias("links")).sort("links", "transport", descending=[True, False])
    )
    if counted.height:
        yield "transports", ", ".join(f"{row['transport']} ({row['links']:,} links)" for row in counted.to_dicts())


def _init(comms: pl.DataFrame) -> Iterator[tuple[str, str]]:
    timed = comms.drop_nulls("init_time_s").sort("init_time_s", descending=True)
    if timed.height:
        row = timed.row(0, named=True)
        waiting = (
            "" if row["init_bootstrap_s"] is None else f", {row['init_bootstrap_s']:.2f} s of it finding the others"
        )
        yield (
            "init",
            (
                f"{row['init_time_s']:.2f} s for the slowest communicator ({row['nranks']} ranks, slowest is rank "
                f"{row['init_slowest_rank']}{waiting}); median {_median(timed):.2f} s"
            ),
        )
    unfinished = comms.filter(pl.col("init_state") == "started")
    if unfinished.height:
        yield "", f"{_counted(unfinished.height, 'communicator')} began and did not finish the initialisation"


def _median(timed: pl.DataFrame) -> float:
    return float(timed.select(pl.col("init_time_s").median()).item())


def _collectives(calls: pl.DataFrame) -> Iterator[tuple[str, str]]:
    by_op = (
        calls.group_by("op")
        .agg(pl.col("total_bytes").sum(), pl.col("collectives").sum(), pl.col("message_bytes").max())
        .sort("total_bytes", "op", descending=[True, False])
    )
    for number, row in enumerate(by_op.iter_rows(named=True)):
        yield (
            "collectives" if number == 0 else "",
            (
                f"{row['op']}: {human_bytes(row['total_bytes'])} in {row['collectives']:,} operations, "
                f"the largest {human_bytes(row['message_bytes'] or 0)}"
            ),
        )


def _tuning(choices: pl.DataFrame) -> Iterator[tuple[str, str]]:
    counted = choices.group_by("algorithm", "protocol").agg(pl.col("calls").sum()).sort("calls", descending=True)
    if counted.height:
        shown = (f"{row['algorithm']}/{row['protocol']} ({row['calls']:,})" for row in counted.head(_MOST).to_dicts())
        yield "chosen", ", ".join(shown)


def _bandwidth(rows: pl.DataFrame, files: pl.DataFrame) -> Iterator[tuple[str, str]]:
    for number, table in enumerate(rows.partition_by("table_no", maintain_order=True)):
        best = pl.max_horizontal("busbw_bytes_per_s", "in_place_busbw_bytes_per_s")
        top = table.with_columns(best=best).sort("best", descending=True, nulls_last=True).row(0, named=True)
        peak = (
            "no figures"
            if top["best"] is None
            else (f"{top['best'] / 1e9:.1f} GB/s bus bandwidth at {human_bytes(top['message_bytes'])}")
        )
        average = files["bench_avg_busbw"][0] if files.height else None
        yield (
            "bandwidth" if number == 0 else "",
            _joined(
                top["op"] or "operation not named",
                _counted(top["nranks"], "rank"),
                peak,
                None if average is None else f"average {average:.1f} GB/s",
                _counted(table.height, "size"),
            ),
        )


def _warnings(warns: pl.DataFrame) -> Iterator[tuple[str, str]]:
    ranked = warns.with_columns(
        order=pl.col("severity").replace_strict(
            {"fatal": 0, "unknown": 1, "follower": 2, "fallback": 3, "benign": 4}, default=5, return_dtype=pl.Int64
        )
    ).sort("order", "line_no")
    for number, row in enumerate(ranked.head(_MOST).iter_rows(named=True)):
        times = f"{row['num_lines']:,} x " if row["num_lines"] > 1 else ""
        yield (
            "warnings" if number == 0 else "",
            f"{row['severity']}: {times}{row['text'][:120]} (line {row['line_no']})",
        )
    if ranked.height > _MOST:
        yield "", f"and {ranked.height - _MOST} kinds more"


def _hangs(hangs: pl.DataFrame) -> Iterator[tuple[str, str]]:
    for number, row in enumerate(hangs.iter_rows(named=True)):
        what = row["op"] if row["seq"] is None else f"{row['op']} seq {row['seq']}"
        group = f" of group {row['process_group']}" if row["process_group"] else ""
        reported = f"{_ranks(row['ranks_reporting'])} waited" if row["ranks_reporting"] else "the log names no rank"
        silent = f", {_ranks(row['ranks_silent'])} silent" if row["ranks_silent"] else ""
        yield "hang" if number == 0 else "", f"{what}{group}: {reported}{silent}"
        suspect = f"suspect: {row['suspect']}; " if row["suspect"] else ""
        yield "", f"  {suspect}{row['suspect_reason']}"


def _ranks(listed: str) -> str:
    return f"rank{'s' if ',' in listed else ''} {listed}"


def _devices(devices: pl.DataFrame) -> Iterator[tuple[str, str]]:
    """Per kind of network the devices of the host with most, and the number of hosts."""
    for number, kind in enumerate(devices.partition_by("net_kind", maintain_order=True)):
        hosts = kind.drop_nulls("device_name").group_by("host", maintain_order=True).agg("device_name", "link_layer")
        most = hosts.sort(pl.col("device_name").list.len(), descending=True, maintain_order=True).head(1).to_dicts()
        name, label = kind["net_kind"][0], "devices" if number == 0 else ""
        if not most:
            yield label, f"{name}: none found"
            continue
        names, layers = most[0]["device_name"], sorted({layer for layer in most[0]["link_layer"] if layer})
        shown = ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")
        yield label, _joined(f"{name}: {shown}", ", ".join(layers) or None, f"on {_counted(hosts.height, 'host')}")


def _findings(findings: pl.DataFrame) -> Iterator[tuple[str, str]]:
    """Evidence and remedy of each finding."""
    for number, row in enumerate(findings.iter_rows(named=True)):
        where = "" if row["line_no"] is None else f" (line {row['line_no']})"
        yield "findings" if number == 0 else "", f"{row['nccl_rule']}: {row['evidence']}{where}"
        yield "", f"  {row['remedy']}"


def _counted(count: int | None, noun: str) -> str | None:
    return None if count is None else f"{count:,} {noun}{'' if count == 1 else 's'}"


def _joined(*parts: str | None) -> str:
    return " · ".join(part for part in parts if part)
