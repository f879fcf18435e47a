"""The fold: facts of the files of a batch to rows of the NCCL tables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import polars as pl

from pipeline.nccl import bench, communicators, devices, graphs, hosts, traffic, warnings
from pipeline.nccl import bench_op as bench_op_of
from pipeline.nccl.facts import Facts
from pipeline.nccl.flight_hangs import flight_hangs
from pipeline.nccl.hangs import hang_rows
from pipeline.nccl.names import dump_set
from schemas.nccl import ALL
from schemas.table import Table

TABLES: Mapping[str, Table] = {table.name: table for table in ALL}
Rows = dict[str, pl.DataFrame]


def has_content(facts: Facts) -> bool:
    """Whether a file has NCCL content: more than what any training log may say about its ranks."""
    if set(facts.frames) - {"watchdog", "bench_mark", "bench_rest"}:
        return True
    telling = facts["watchdog"].filter(~pl.col("kind").is_in(["died", "world"]))
    return not telling.is_empty() or not facts["bench_mark"].filter(pl.col("mark") != "program").is_empty()


def nccl_tables(
    files: pl.DataFrame,
    facts: Mapping[int, Facts],
    *,
    num_ranks: Mapping[int, int],
    dumps: Mapping[int, pl.DataFrame] = MappingProxyType({}),
    bench_op: str | None = None,
) -> Rows:
    """Rows of every NCCL table for the files of a batch.

    Args:
        files: `source`, `path`, `unit`, `run_dir`, `sweep`, `origin` of each file; lines of a hang are looked for in
            all files of a unit together, since every rank may write a file of its own.
        facts: by source; files without NCCL content are passed over.
        num_ranks: size of the job by source, as far as its settings tell.
        dumps: rows of `flight_records` by source; the dumps of all ranks are judged together.
        bench_op: operation of benchmarks that do not print theirs.

    Returns:
        table name -> conformed frame; tables without rows are left out.
    """
    told = {source: one for source, one in facts.items() if has_content(one)}
    rows: dict[str, list[pl.DataFrame]] = {name: [] for name in TABLES}
    paths = dict(files.select("source", "path").iter_rows())
    for source, one in told.items():
        tables = _file_tables(mended(one))
        tables["nccl_bench"] = bench_op_of.with_name(tables["nccl_bench"], paths[source], op=bench_op)
        for name, frame in tables.items():
            rows[name].append(frame.with_columns(source=pl.lit(source, pl.Int64)))
    rows["nccl_hangs"] = [_hangs(files, told, rows["nccl_files"], num_ranks), _flight_hangs(files, dumps)]
    rows["flight_records"] = [frame.with_columns(source=pl.lit(source, pl.Int64)) for source, frame in dumps.items()]
    places = files.select("source", "run_dir", "sweep", "origin", source_path="path").with_columns(
        pl.col("source").cast(pl.Int64)
    )
    found = {}
    for name, frames in rows.items():
        filled = [frame for frame in frames if not frame.is_empty()]
        if filled:
            merged = pl.concat(filled, how="diagonal_relaxed").join(places, on="source", maintain_order="left")
            found[name] = TABLES[name].conform(merged)
    return _with_hang_counts(found)


def mended(facts: Facts) -> Facts:
    """`facts` with hosts as they are, where a cut text was glued to them."""
    true = hosts.true_hosts(facts["process"]) if "process" in facts.frames else {}
    if not true:
        return facts
    names = pl.DataFrame(
        [(host, pid, name) for (host, pid), name in true.items()],
        schema={"host": pl.String, "pid": pl.Int64, "true": pl.String},
        orient="row",
    )
    changed = {
        kind: frame.join(names, on=["host", "pid"], how="left", maintain_order="left")
        .with_columns(host=pl.coalesce("true", "host"))
        .drop("true")
        if {"host", "pid"} <= set(frame.columns)
        else frame
        for kind, frame in facts.frames.items()
    }
    return Facts(changed)


_PLACES = ("source_path", "run_dir")
_OF_COMMUNICATORS = ("nccl_communicators", "nccl_ranks", "nccl_links", "nccl_collectives")
_ABOUT_COMMUNICATORS = {"init", "timing", "shape", "ring", "channels", "link", "coll"}


def _file_tables(facts: Facts) -> Rows:
    """Rows of one file. Most files say little: a table without facts is the empty one, made once."""
    said = set(facts.frames)
    tables = dict(_nothing())
    comms = communicators.gather(facts) if said & _ABOUT_COMMUNICATORS else _no_communicators()
    if said & _ABOUT_COMMUNICATORS:
        tables |= _communicator_tables(facts, comms)
    if "tuning" in said:
        tables["nccl_tuning"] = _tuning(facts["tuning"])
    if "graph" in said:
        tables["nccl_graphs"] = graphs.graph_rows(facts["graph"], facts["init"], tables["nccl_ranks"])
    if "device" in said:
        tables["nccl_devices"] = devices.device_rows(facts["device"])
    if "warn" in said:
        tables["nccl_warnings"] = warnings.warning_rows(facts["warn"])
    if "bench_row" in said:
        tables["nccl_bench"] = bench.bench_rows(facts["bench_row"], facts["bench_rest"], facts["bench_mark"])
    return {**tables, "nccl_files": _summaries([_summary(facts, comms, tables)])}


def _communicator_tables(facts: Facts, comms: communicators.Communicators) -> Rows:
    calls = traffic.with_ranks(facts["coll"], comms)
    by_rank = traffic.by_rank(calls)
    communicator_rows = _frame("nccl_communicators", communicators.communicator_rows(comms))
    rank_rows = _frame("nccl_ranks", communicators.rank_rows(comms))
    return {
        "nccl_communicators": _with_calls(communicator_rows, by_rank, ["comm_index"], ["coll_calls"]),
        "nccl_ranks": _with_calls(rank_rows, by_rank, ["comm_index", "rank"], ["coll_calls", "last_op_count"]),
        "nccl_links": communicators.link_rows(comms),
        "nccl_collectives": traffic.collective_rows(calls),
    }


@cache
def _nothing() -> Mapping[str, pl.DataFrame]:
    """Every table of a file without any facts, but for the one about the file."""
    none = Facts({})
    return {
        **_communicator_tables(none, _no_communicators()),
        "nccl_graphs": TABLES["nccl_graphs"].empty().drop(_PLACES),
        "nccl_devices": TABLES["nccl_devices"].empty().drop(_PLACES),
        "nccl_tuning": _tuning(none["tuning"]),
        "nccl_warnings": warnings.warning_rows(none["warn"]),
        "nccl_bench": bench.bench_rows(none["bench_row"], none["bench_rest"], none["bench_mark"]),
    }


@cache
def _no_communicators() -> communicators.Communicators:
    return communicators.gather(Facts({}))


def _summaries(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)


def _frame(table: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    schema = TABLES[table].polars_schema
    names = [name for name in schema if not rows or name in rows[0]]
    return pl.DataFrame(rows, schema={name: schema[name] for name in names})


def _with_calls(rows: pl.DataFrame, calls: pl.DataFrame, key: list[str], names: list[str]) -> pl.DataFrame:
    """Calls added up per key; a communicator without COLL lines has NULL, for the lines may not have been asked for."""
    summed = calls.drop_nulls(key).group_by(key).agg(
        coll_calls=pl.col("coll_calls").sum(), last_op_count=pl.col("last_op_count").max()
    )  # fmt: skip
    return rows.drop(names, strict=False).join(summed.select(*key, *names), on=key, how="left", maintain_order="left")


def _tuning(tuning: pl.DataFrame) -> pl.DataFrame:
    key = ["op", "size", "algorithm", "protocol", "channels"]
    return (
        tuning.sort("line_no")
        .group_by(key, maintain_order=True)
        .agg(calls=pl.col("lines").sum(), line_no=pl.col("line_no").min())
        .rename({"size": "message_bytes", "channels": "tuning_channels"})
    )


def _summary(facts: Facts, comms: communicators.Communicators, tables: Rows) -> dict[str, Any]:
    """The row of `nccl_files`."""
    said = set(facts.frames)
    versions = facts["version"].sort("line_no")
    printed = versions["version"].unique(maintain_order=True).to_list()
    named = [version for version in printed if not _is_named(version, [other for other in printed if other != version])]
    if "bench_mark" in said:
        named += [code for code in bench.library_versions(facts["bench_mark"]) if not _is_named(code, named)]
    tally = dict(facts["tally"].group_by("name").agg(pl.col("lines").sum()).iter_rows()) if "tally" in said else {}
    row = {
        "nccl_flavour": "RCCL" if _is_rccl(facts, versions) else "NCCL",
        "nccl_version": ", ".join(named) or None,
        **(_of_communicators(facts, comms, tables) if said & _ABOUT_COMMUNICATORS else _UNKNOWN),
        **_of_warnings(facts["warn"] if "warn" in said else None),
        **_of_benchmarks(facts, tables["nccl_bench"]),
        "networks": ", ".join(sorted(facts["network"]["network"].unique())) if "network" in said else None,
        "has_tuning": "tuning" in said,
        "nccl_env": _environment(facts["env"]) if "env" in said else None,
        "nccl_lines": tally.get("lines", 0) + tally.get("summed", 0),
        "nccl_lines_other": tally.get("other", 0),
        "nccl_lines_damaged": tally.get("damaged", 0),
    }
    return row | {"num_nodes": row["num_nodes"] or tables["nccl_bench"]["num_nodes"].max()}


_UNKNOWN: Mapping[str, Any] = {
    "nranks_max": None, "num_nodes": None, "num_communicators": None, "num_channels": None, "transports": None,
    "has_coll": False, "coll_calls": None, "total_bytes": None, "init_time_s": None,
}  # fmt: skip
"""What a file without a line about a communicator says of them."""


def _of_communicators(facts: Facts, comms: communicators.Communicators, tables: Rows) -> dict[str, Any]:
    sizes = [
        *facts["init"]["nranks"], *facts["timing"]["nranks"], *facts["shape"]["nranks"],
        *facts["coll"]["nranks"].drop_nulls().unique(),
    ]  # fmt: skip
    ready = [comm for comm in comms.all if any(rank.state != "started" for rank in comm.ranks.values())]
    coll_lines = facts["coll"]["lines"].sum()
    rows = tables["nccl_communicators"]
    return {
        "nranks_max": max(sizes, default=None),
        # Hosts of the file are not counted: it may be the log of one node of many.
        "num_nodes": facts["shape"]["nnodes"].max() or rows["num_nodes"].max(),
        "num_communicators": len(ready) if not facts["init"].is_empty() else None,
        "num_channels": facts["ring"]["channels"].max(),
        "transports": ", ".join(sorted(tables["nccl_links"]["transport"].unique())) or None,
        "has_coll": coll_lines > 0,
        "coll_calls": coll_lines or None,
        "total_bytes": tables["nccl_collectives"]["total_bytes"].sum() or None,
        "init_time_s": rows["init_time_s"].max(),
    }


def _of_warnings(warns: pl.DataFrame | None) -> dict[str, Any]:
    if warns is None:
        return {"num_warns": 0, "first_warn": None}
    return {"num_warns": warns["lines"].sum(), "first_warn": warns.sort("line_no")["text"].first()}


def _of_benchmarks(facts: Facts, rows: pl.DataFrame) -> dict[str, Any]:
    return {
        "bench_rows": rows.height,
        "bench_tables": rows["table_no"].n_unique(),
        "bench_avg_busbw": bench.average_busbw(rows, facts["bench_mark"]) if "bench_mark" in facts.frames else None,
    }


def _is_rccl(facts: Facts, versions: pl.DataFrame) -> bool:
    """By its banner, or by settings that only RCCL has."""
    return "RCCL" in versions["flavour"].to_list() or facts["env"]["name"].str.starts_with("RCCL_").any()


def _is_named(code: str, versions: list[str]) -> bool:
    return any(version == code or version.startswith((f"{code}+", f"{code}-")) for version in versions)


def _environment(env: pl.DataFrame) -> str | None:
    pairs = env.sort("line_no").unique(["name", "value"], keep="first", maintain_order=True)
    return (
        ", ".join(f"{name}={value}" for name, value in pairs.sort("name").select("name", "value").iter_rows()) or None
    )


def _hangs(
    files: pl.DataFrame, facts: Mapping[int, Facts], summaries: list[pl.DataFrame], num_ranks: Mapping[int, int]
) -> pl.DataFrame:
    """Hangs of each unit: its files are read together."""
    unit_of = dict(files.select("source", "unit").iter_rows())
    sizes = {row["source"]: row["nranks_max"] for frame in summaries for row in frame.iter_rows(named=True)}
    of_unit: dict[str, list[int]] = {}
    for source in facts:
        of_unit.setdefault(unit_of[source], []).append(source)
    rows = []
    for sources in of_unit.values():
        lines = pl.concat(facts[source]["watchdog"].with_columns(source=pl.lit(source, pl.Int64)) for source in sources)
        # A communicator's size is the job's or less; what a setting says comes first.
        told = [num_ranks[source] for source in sources if source in num_ranks]
        seen = [sizes[source] for source in sources if sizes.get(source)]
        rows += hang_rows(lines, num_ranks=max(told or seen, default=None))
    return pl.DataFrame(rows, schema={**TABLES["nccl_hangs"].polars_schema, "source": pl.Int64}).drop(
        "source_path", "run_dir"
    )


def _flight_hangs(files: pl.DataFrame, dumps: Mapping[int, pl.DataFrame]) -> pl.DataFrame:
    """Hangs according to each set of dumps."""
    sets: dict[str, list[pl.DataFrame]] = {}
    for source, path in files.select("source", "path").iter_rows():
        if source in dumps:
            sets.setdefault(dump_set(path), []).append(dumps[source].with_columns(source=pl.lit(source, pl.Int64)))
    rows = [row for one in sets.values() for row in flight_hangs(pl.concat(one))]
    return pl.DataFrame(rows, schema={**TABLES["nccl_hangs"].polars_schema, "source": pl.Int64}).drop(
        "source_path", "run_dir"
    )


def _with_hang_counts(tables: Rows) -> Rows:
    if "nccl_files" not in tables:
        return tables
    hangs = tables.get("nccl_hangs", TABLES["nccl_hangs"].empty())
    counted = hangs.group_by("source_path").agg(pl.len().cast(pl.Int64).alias("num_hangs"))
    files = tables["nccl_files"].drop("num_hangs").join(counted, on="source_path", how="left", maintain_order="left")
    return {**tables, "nccl_files": TABLES["nccl_files"].conform(files.with_columns(pl.col("num_hangs").fill_null(0)))}
