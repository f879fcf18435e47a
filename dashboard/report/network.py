"""The section on the network: findings with their remedies, bandwidth by size and nodes, initialisation and hangs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import polars as pl

from sweepscope.dashboard.charts import network as charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.queries import network as queries
from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.report.section import Listing, Picture, Section
from sweepscope.dashboard.text import hang as hang_texts
from sweepscope.dashboard.text import network as texts
from sweepscope.dashboard.view_models import network as view_models

_LISTED = 400
_FINDINGS = names("nccl_rule evidence places remedy fact_source sweep source_path line_no run_id")
_HANGS = names("hang suspect waited_s file run_id")
_FILES = names(
    "source_path nccl_flavour nccl_version nranks_max num_nodes num_communicators num_channels transports networks "
    "init_time_s num_warns num_hangs run_id"
)
_BENCH = names("op num_nodes nranks fabric message busbw_bytes_per_s best_busbw_bytes_per_s files")


def network(con: Reader, origin: str, theme: Theme) -> Section | None:
    """What NCCL's output and nccl-tests say of an origin's runs; None where it has no such file."""
    if origin not in queries.origins().run(con)["origin"]:
        return None
    scope = Scope(origin, None)
    totals = queries.totals(scope).run(con).row(0, named=True)
    found, hangs = queries.findings(scope).run(con), queries.hangs(scope).run(con)
    inits = queries.init_times(scope).run(con)
    best = next(iter(queries.best_bandwidth(scope).run(con).to_dicts()), None)
    operations: list[str | None] = queries.operations(scope).run(con)["op"].to_list()
    bench = [queries.bandwidths(scope, op).run(con) for op in operations]
    pictures = [picture for op, rows in zip(operations, bench, strict=True) for picture in _by_size(op, rows, theme)]
    listings = [
        Listing("Findings, the costly ones first", found, _FINDINGS, most=_LISTED),
        Listing("Hangs", _named(hangs), _HANGS, most=_LISTED),
        Listing("Files with NCCL debug output", queries.files(scope).run(con), _FILES, most=_LISTED),
        *([Listing("Bus bandwidths", _sized(bench), _BENCH, most=_LISTED)] if bench else []),
    ]
    return Section(
        "network",
        "Network",
        texts.answer(totals, view_models.by_rule(found), hangs),
        texts.meta(totals, None, queries.sweeps(origin).run(con).height),
        (origin,),
        figures=texts.figures(totals, inits, best, hangs),
        pictures=[*pictures, *_of_inits(inits, theme)],
        listings=[listing for listing in listings if listing.frame.height],
        queries={
            "Findings": queries.findings(scope),
            "Hangs": queries.hangs(scope),
            "Files": queries.files(scope),
            "Init times": queries.init_times(scope),
        },
        notes=texts.HOW_TO_READ,
    )


def _by_size(op: str | None, rows: pl.DataFrame, theme: Theme) -> Sequence[Picture]:
    if rows.is_empty():
        return []
    named, lines, _ = view_models.bandwidth_lines(rows)
    hovers = [texts.bandwidth_hover(row) for row in named.iter_rows(named=True)]
    draw = partial(charts.draw_bandwidth, named, lines, hovers, theme)
    return [Picture(f"Bus bandwidth by size, {texts.operation(op)}", draw, texts.bandwidth_alt(op, lines))]


def _of_inits(inits: pl.DataFrame, theme: Theme) -> Sequence[Picture]:
    if inits.is_empty():
        return []
    draw = partial(charts.draw_init, inits, [texts.init_hover(row) for row in inits.iter_rows(named=True)], theme)
    alt = f"Initialisation times of {numbers.count(inits.height, 'communicator')}, a row per number of ranks."
    return [Picture("Initialisation of communicators, slowest rank of each", draw, alt)]


def _named(hangs: pl.DataFrame) -> pl.DataFrame:
    rows = hangs.to_dicts()
    return hangs.with_columns(
        hang=pl.Series(list(map(hang_texts.hang_title, rows)), dtype=pl.String),
        file=pl.Series(list(map(texts.file_line, rows)), dtype=pl.String),
        waited_s=pl.col("ran_for_ms") / 1000,
        suspect=pl.col("suspect").fill_null("not determinable"),
    )


def _sized(bench: Sequence[pl.DataFrame]) -> pl.DataFrame:
    rows = pl.concat(bench, how="vertical_relaxed")
    return rows.with_columns(message=pl.col("message_bytes").map_elements(view_models.size_text, pl.String))
