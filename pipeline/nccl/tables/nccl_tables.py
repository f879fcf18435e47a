"""The fold: facts of the files of a batch to rows of the NCCL tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import polars as pl

from sweepscope.pipeline.io.malloc import give_back
from sweepscope.pipeline.nccl.bench import bench_rows, operation
from sweepscope.pipeline.nccl.facts import Facts
from sweepscope.pipeline.nccl.flight_recorder.dump_sets import set_hangs
from sweepscope.pipeline.nccl.lines import devices, warn_lines
from sweepscope.pipeline.nccl.lines.messages import NO_HOST
from sweepscope.pipeline.nccl.tables import collective_rows, communicator_rows, communicators, hosts, links
from sweepscope.pipeline.nccl.tables.file_rows import file_rows
from sweepscope.pipeline.nccl.tables.graph_rows import graph_rows
from sweepscope.pipeline.nccl.tables.hang_lines import hang_lines
from sweepscope.pipeline.nccl.tables.hangs import hang_rows
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.registry import NCCL_TABLES

TABLES: Mapping[str, Table] = {table.name: table for table in NCCL_TABLES}
Rows = dict[str, pl.DataFrame]


_CONTENT = {
    "watchdog": ~pl.col("kind").is_in(["died", "world"]),
    "bench_mark": ~pl.col("mark").is_in(["program", "rccl"]),
    "bench_half": pl.lit(value=False),
}


def with_content(facts: Facts) -> set[int]:
    """The files with NCCL content: more than the lines on ranks that any training log may have."""
    found = set()
    for kind, frame in facts.frames.items():
        rows = frame.filter(_CONTENT[kind]) if kind in _CONTENT else frame
        found |= set(rows["source"].unique())
    return found


def nccl_tables(
    files: pl.DataFrame,
    facts: Facts,
    *,
    num_ranks: Mapping[int, int],
    dumps: Mapping[int, pl.DataFrame] = MappingProxyType({}),
    bench_operation: str | None = None,
) -> Rows:
    """Rows of every NCCL table for the files of a batch, all at once: most files have few facts.

    Args:
        files: `source`, `path`, `unit`, `run_dir`, `sweep`, `origin` of each file; lines of a hang are looked for in
            all files of a unit together, since every rank may write its own file.
        facts: of all of them; files without NCCL content are passed over.
        num_ranks: size of the job by source, where its settings have it.
        dumps: rows of `flight_records` by source; the dumps of all ranks are judged together.
        bench_operation: of benchmarks that do not print theirs.

    Returns:
        table name -> conformed frame; tables without rows are left out.
    """
    give_back()
    with_facts = with_content(facts)
    facts = facts.of(with_facts)
    watchdog = facts["watchdog"]
    rows: dict[str, list[pl.DataFrame]] = {name: [] for name in TABLES}
    if with_facts:
        facts = mended(facts)
        tables = _tables_of(facts)
        del facts
        give_back()
        if not tables["nccl_bench"].is_empty():
            paths = dict(files.select("source", "path").iter_rows())
            tables["nccl_bench"] = operation.with_given_operation(tables["nccl_bench"], paths, op=bench_operation)
        for name in list(tables):
            rows[name].append(tables.pop(name))
    units = files.select(pl.col("source").cast(pl.Int64), "unit")
    watchdog = watchdog.join(units, on="source", maintain_order="left")
    rows["nccl_hang_lines"] = [hang_lines(watchdog)]
    rows["nccl_hangs"] = [_hangs(units, watchdog, rows["nccl_files"], num_ranks)]
    rows["nccl_hangs"].append(_hang_frame(set_hangs(files, dumps)))
    rows["flight_records"] = [frame.with_columns(source=pl.lit(source, pl.Int64)) for source, frame in dumps.items()]
    provenance = files.select("source", "run_dir", "sweep", "origin", source_path="path").with_columns(
        pl.col("source").cast(pl.Int64)
    )
    found = {}
    for name in list(rows):
        filled = [frame for frame in rows.pop(name) if not frame.is_empty()]  # popped, so that memory holds it once
        if filled:
            merged = pl.concat(filled, how="diagonal_relaxed")
            filled.clear()
            found[name] = TABLES[name].conform(merged.join(provenance, on="source", maintain_order="left"))
    return _with_hang_counts(found)


def _without_torn(facts: Facts) -> Facts:
    """`facts` without those of lines without a host in files where others have one: such lines were torn."""
    torn = pl.col("host") == NO_HOST
    processes = facts["process"]
    if not processes.select(torn.any()).item():
        return facts
    whole = processes.filter(~torn)["source"].unique().implode()
    kept = ~(torn & pl.col("source").is_in(whole))
    return Facts(
        {kind: frame.filter(kept) if "host" in frame.columns else frame for kind, frame in facts.frames.items()}
    )


def mended(facts: Facts) -> Facts:
    """`facts` with true hosts where the end of a cut text was glued to them."""
    if "process" not in facts.frames:
        return facts
    facts = _without_torn(facts)
    true = hosts.true_hosts(facts["process"])
    if not true:
        return facts
    names = pl.DataFrame(
        [(*process, name) for process, name in true.items()],
        schema={"source": pl.Int64, "host": pl.String, "pid": pl.Int64, "true": pl.String},
        orient="row",
    )
    key = ["source", "host", "pid"]

    def mended_host(frame: pl.DataFrame) -> pl.Series:
        found = frame.select(key).join(names, on=key, how="left", maintain_order="left")
        return found.select(host=pl.coalesce("true", "host")).to_series()

    changed = {
        kind: frame.with_columns(mended_host(frame)) if {"host", "pid"} <= set(frame.columns) else frame
        for kind, frame in facts.frames.items()
    }
    return Facts(changed)


# Facts of training logs without NCCL_DEBUG: they make rows of `nccl_files` and of hangs, and of no other table.
_OF_FILES = {"process", "version", "watchdog", "tally"}
_NO_ROWS = {
    name: TABLES[name].empty().with_columns(source=pl.lit(None, pl.Int64))
    for name in TABLES.keys() - {"nccl_files", "nccl_hangs", "nccl_hang_lines", "flight_records"}
}


def _tables_of(facts: Facts) -> Rows:
    """Rows of files with NCCL content, by `source`. Takes from the facts what is large."""
    sources = pl.concat([frame["source"].unique() for frame in facts.frames.values()]).unique().sort()
    if facts.frames.keys() <= _OF_FILES:
        return _NO_ROWS | {"nccl_files": file_rows(sources, facts, _NO_ROWS, facts["link"])}
    comms = communicators.gather(facts["init"])
    timings = communicator_rows.timings(facts["timing"], comms.events)
    calls = collective_rows.with_ranks(facts["coll"], comms)
    by_rank = collective_rows.by_rank(calls)
    comm_rows = communicator_rows.communicator_rows(comms, timings, facts)
    rank_rows = communicator_rows.rank_rows(comms, timings)
    linked = facts["link"].select("source", "nranks").unique()
    link_rows = links.link_rows(facts.take("link"), comms)
    give_back()
    key = ["source", "comm_index"]
    comm_rows = comm_rows.join(links.transports(link_rows), on=key, how="left", maintain_order="left")
    tables = {
        "nccl_communicators": _with_calls(comm_rows, by_rank, key, ["coll_calls"]),
        "nccl_ranks": _with_calls(rank_rows, by_rank, [*key, "rank"], ["coll_calls", "last_op_count"]),
        "nccl_links": link_rows,
        "nccl_collectives": collective_rows.collective_rows(calls),
        "nccl_tuning": _tuning(facts["tuning"]),
        "nccl_graphs": graph_rows(facts.take("graph"), comms.events),
        "nccl_devices": devices.device_rows(facts["device"]),
        "nccl_warnings": warn_lines.warning_rows(facts["warn"]),
        "nccl_bench": bench_rows.bench_rows(facts["bench_row"], facts["bench_half"], facts["bench_mark"]),
    }
    for name in ("nccl_ranks", "nccl_warnings"):
        tables[name] = tables[name].with_columns(pl.when(pl.col("host") != NO_HOST).then(pl.col("host", "pid")))
    return tables | {"nccl_files": file_rows(sources, facts, tables, linked)}


def _with_calls(rows: pl.DataFrame, calls: pl.DataFrame, key: list[str], names: list[str]) -> pl.DataFrame:
    """Calls added up per key; a communicator without COLL lines has NULL, for the lines may not have been asked for."""
    summed = (
        calls.drop_nulls(key)
        .group_by(key)
        .agg(coll_calls=pl.col("coll_calls").sum(), last_op_count=pl.col("last_op_count").max())
    )
    return rows.join(summed.select(*key, *names), on=key, how="left", maintain_order="left")


def _tuning(tuning: pl.DataFrame) -> pl.DataFrame:
    key = ["source", "op", "size", "algorithm", "protocol", "channels"]
    return (
        tuning.sort("source", "line_no")
        .group_by(key, maintain_order=True)
        .agg(calls=pl.col("lines").sum(), line_no=pl.col("line_no").min())
        .rename({"size": "message_bytes", "channels": "tuning_channels"})
    )


def _hangs(
    units: pl.DataFrame, watchdog: pl.DataFrame, summaries: list[pl.DataFrame], num_ranks: Mapping[int, int]
) -> pl.DataFrame:
    """Hangs of each unit: its files are read together."""
    lines = watchdog.sort("source", "line_no", maintain_order=True)
    timed_out = lines.filter(pl.col("kind") == "timeout")["unit"].unique()
    sizes = {source: size for frame in summaries for source, size in frame.select("source", "nranks_max").iter_rows()}
    rows = []
    waiting = lines.filter(pl.col("unit").is_in(timed_out.to_list()))
    measured: dict[str, list[int]] = defaultdict(list)
    for source, unit in units.iter_rows():
        if source in sizes:
            measured[unit].append(source)
    for (unit,), of_unit in waiting.partition_by("unit", as_dict=True, maintain_order=True).items():
        sources = measured[unit]
        # A communicator's size is the job's or less; settings come first.
        set_sizes = [num_ranks[source] for source in sources if source in num_ranks]
        seen = [size for source in sources if (size := sizes[source])]
        rows += hang_rows(of_unit, num_ranks=max(set_sizes or seen, default=None))
    return _hang_frame(rows)


def _hang_frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
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
