"""The fold for `nccl_files`: totals of each file."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sweepscope.pipeline.nccl.bench import bench_rows
from sweepscope.pipeline.nccl.facts import Facts

_CUT_RING = 800
"""Characters of a ring that NCCL's buffer of 1,024 may have cut, with the prefix of its line."""


def file_rows(
    sources: pl.Series, facts: Facts, tables: Mapping[str, pl.DataFrame], linked: pl.DataFrame
) -> pl.DataFrame:
    """One row per source.

    Args:
        sources: the files.
        facts: of the files, but for those that only other tables are made of.
        tables: rows of the other tables by `source`.
        linked: `source` and `nranks` of the communicators that `via` lines name.
    """
    rows = pl.DataFrame({"source": sources})
    parts = (
        _versions(facts),
        _sizes(facts, tables, linked),
        _traffic(facts, tables),
        _warnings(facts["warn"]),
        _benchmarks(facts, tables["nccl_bench"]),
        _environment(facts),
        _tally(facts["tally"]),
    )
    for part in parts:
        rows = rows.join(part, on="source", how="left", maintain_order="left")
    counts = ("num_warns", "bench_rows", "bench_tables", "nccl_lines", "nccl_lines_other", "nccl_lines_damaged")
    return rows.with_columns(
        pl.col(counts).fill_null(0),
        pl.col("has_coll", "has_tuning").fill_null(value=False),
        pl.col("nccl_flavour").fill_null("NCCL"),
        # Hosts of the file are not counted: it may be the log of one node of many.
        num_nodes=pl.coalesce("nodes_printed", "nodes_of_ranks", "nodes_of_bench"),
        nranks_max=pl.coalesce("nranks_max", "ranks_of_bench", "ranks_of_rings"),
        num_channels=pl.coalesce("num_channels", "coll_channels"),
    ).drop("nodes_printed", "nodes_of_ranks", "nodes_of_bench", "ranks_of_bench", "ranks_of_rings", "coll_channels")


def _versions(facts: Facts) -> pl.DataFrame:
    """`nccl_flavour`, `nccl_version`. RCCL is known by its banner, settings of its own, or rccl-tests."""
    printed = facts["version"].sort("source", "line_no", maintain_order=True)
    libraries = bench_rows.library_versions(facts["bench_mark"])
    rccl = {
        *printed.filter(pl.col("flavour") == "RCCL")["source"],
        *facts["env"].filter(pl.col("name").str.starts_with("RCCL_"))["source"],
        *facts["bench_mark"].filter(pl.col("mark") == "rccl")["source"],
    }
    by_source = printed.group_by("source", maintain_order=True).agg(pl.col("version").unique(maintain_order=True))
    named = dict(by_source.iter_rows())
    rows = []
    for source in {*named, *libraries, *rccl}:
        versions = named.get(source, [])
        names = [name for name in versions if not _is_named(name, [other for other in versions if other != name])]
        names += [code for code in libraries.get(source, []) if not _is_named(code, names)]
        rows.append((source, "RCCL" if source in rccl else "NCCL", ", ".join(names) or None))
    schema = {"source": pl.Int64, "nccl_flavour": pl.String, "nccl_version": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _is_named(code: str, versions: list[str]) -> bool:
    return any(version == code or version.startswith((f"{code}+", f"{code}-")) for version in versions)


def _sizes(facts: Facts, tables: Mapping[str, pl.DataFrame], linked: pl.DataFrame) -> pl.DataFrame:
    named = [facts[kind] for kind in ("init", "timing", "shape", "coll")]
    sizes = pl.concat([frame.select("source", "nranks") for frame in (*named, linked)])
    comms = tables["nccl_communicators"].group_by("source").agg(nodes_of_ranks=pl.col("num_nodes").max())
    # Communicators of which no rank became ready are not counted.
    came_up = (
        tables["nccl_ranks"]
        .filter(pl.col("init_state") != "started")
        .group_by("source")
        .agg(num_communicators=pl.col("comm_index").n_unique().cast(pl.Int64))
    )
    begun = facts["init"].select("source").unique().join(came_up, on="source", how="left")
    parts = (
        sizes.group_by("source").agg(nranks_max=pl.col("nranks").max()),
        facts["shape"].group_by("source").agg(nodes_printed=pl.col("nnodes").max()),
        facts["ring"].group_by("source").agg(num_channels=pl.col("channels").max()),
        facts["channels"].group_by("source").agg(coll_channels=pl.col("coll").max()),
        _ranks_of_rings(facts["ring"]),
        begun.with_columns(pl.col("num_communicators").fill_null(0)),
        facts["timing"].group_by("source").agg(init_time_s=pl.col("total").max()),
        comms,
    )
    return _joined(parts)


def _ranks_of_rings(rings: pl.DataFrame) -> pl.DataFrame:
    """`ranks_of_rings` of excerpts without another line that counts ranks: those of the largest whole ring.

    A ring that another write or NCCL's buffer has cut lacks ranks, so one counts only if it names each rank from 0 on
    and no larger rank is named elsewhere in the file.
    """
    ranks = pl.col("order").str.extract_all(r"[0-9]+").cast(pl.List(pl.Int64), strict=False).list
    counted = rings.filter(pl.col("order").str.len_bytes() < _CUT_RING).select(
        "source", count=ranks.n_unique().cast(pl.Int64), last=ranks.max()
    )
    most = counted.group_by("source").agg(ranks_of_rings=pl.col("count").max(), last=pl.col("last").max())
    return most.filter((pl.col("ranks_of_rings") == pl.col("last") + 1) & (pl.col("last") > 0)).drop("last")


def _traffic(facts: Facts, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    moved = pl.col("total_bytes").sum()
    parts = (
        facts["coll"].group_by("source").agg(has_coll=pl.col("lines").sum() > 0, coll_calls=pl.col("lines").sum()),
        tables["nccl_collectives"].group_by("source").agg(total_bytes=pl.when(moved > 0).then(moved)),
        _listed(tables["nccl_links"], "transport", "transports"),
        _listed(facts["network"], "network", "networks"),
        facts["tuning"].select("source").unique().with_columns(has_tuning=pl.lit(value=True)),
    )
    return _joined(parts)


def _warnings(warns: pl.DataFrame) -> pl.DataFrame:
    first = warns.sort("source", "line_no").group_by("source", maintain_order=True)
    return first.agg(num_warns=pl.col("lines").sum(), first_warn=pl.col("text").first())


def _benchmarks(facts: Facts, rows: pl.DataFrame) -> pl.DataFrame:
    counted = rows.group_by("source").agg(
        bench_rows=pl.len().cast(pl.Int64),
        bench_tables=pl.col("table_no").n_unique().cast(pl.Int64),
        nodes_of_bench=pl.col("num_nodes").max(),
        ranks_of_bench=pl.col("nranks").max(),
    )
    return _joined((counted, bench_rows.average_busbw(rows, facts["bench_mark"])))


def _environment(facts: Facts) -> pl.DataFrame:
    first = facts["env"].sort("source", "line_no").unique(["source", "name", "value"], keep="first")
    pairs = first.sort("source", "name", "line_no").group_by("source", maintain_order=True)
    return pairs.agg(nccl_env=pl.format("{}={}", "name", "value").str.join(", "))


def _tally(tally: pl.DataFrame) -> pl.DataFrame:
    def of(name: str) -> pl.Expr:
        return pl.col("lines").filter(pl.col("name") == name).sum()

    return tally.group_by("source").agg(
        nccl_lines=of("lines") + of("summed"), nccl_lines_other=of("other"), nccl_lines_damaged=of("damaged")
    )


def _listed(rows: pl.DataFrame, name: str, into: str) -> pl.DataFrame:
    """The distinct values of each file, sorted."""
    return rows.group_by("source").agg(pl.col(name).unique().sort().str.join(", ").alias(into))


def _joined(parts: tuple[pl.DataFrame, ...]) -> pl.DataFrame:
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.join(part, on="source", how="full", coalesce=True)
    return joined
