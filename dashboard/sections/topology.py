"""The picture of one communicator and its traffic, as a section of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import streamlit as st

from sweepscope.dashboard.charts import topology as charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.queries import topology as queries
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.text import topology as texts
from sweepscope.dashboard.view_models import network, topology, topology_picture
from sweepscope.dashboard.widgets import basic, choices, tables

_LINKS = ("rank_from", "rank_to", "transport", "direction", "net_devices", "link_channels", "line_no")
_TRAFFIC = ("op", "nranks", "communicators", "collectives", "median_message", "largest_message", "moved")
_BETWEEN = ("host_from", "host_to", "moved", "communicators")
_MOST_ROWS = 2_000


def draw(con: Reader, theme: Theme, offered: Sequence[dict[str, Any]]) -> None:
    """A picture of one of the `offered` communicators (rows of `queries.communicators`), chosen by the reader."""
    by_name = {f"{row['source_path']}#{row['comm_index']}": row for row in offered}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        names = list(by_name)
        name = choices.select(
            "Communicator",
            "communicator",
            names,
            shown=lambda name: texts.communicator_option(by_name[name]),
            width=460,
        )
        row = by_name[name]
        at = row["source_path"], row["comm_index"]
        graphs = queries.graphs(*at).run(con)
        options = topology.graph_options(graphs)
        show = choices.select(
            "Show",
            "show",
            [topology.ALL_LINKS, *options],
            shown=lambda option: texts.show_option(option, options),
            width=260,
        )
        basic.sql_popover(
            {
                "Links": queries.links(*at),
                "Rings and trees": queries.graphs(*at),
                "Ranks": queries.ranks(*at),
                "Traffic": queries.traffic(at[0]),
                "Between nodes": queries.between_nodes(at[0]),
            }
        )
    ranks, links = queries.ranks(*at).run(con), queries.links(*at).run(con)
    found = topology_picture.picture(row["nranks"], ranks, links, graphs, show)
    left, right = st.columns([0.62, 0.38], gap="large")
    with left, st.container(gap="xsmall"):
        basic.chart(charts.draw_topology(found, theme), key="topology", alt=texts.alt(found, row))
        basic.line_legend(
            [
                (getattr(theme, topology.TRANSPORT[kind].color), topology.DASH.get(kind, "solid"), text)
                for kind, text in texts.legend(found)
            ]
        )
        basic.notes(texts.notes(found, row, ranks, topology.ring_order(row["nranks"], graphs), graphs))
    with right, st.container(gap="xsmall"):
        _draw_traffic(con, at[0])
    if links.height:
        title = f"Links as a table, {numbers.count(links.height, 'row')}"
        tables.table_twin(title, links.head(_MOST_ROWS), _LINKS, csv=links, csv_name="nccl_links")


def _draw_traffic(con: Reader, source_path: str) -> None:
    """What the collectives of the file moved, and where it would have gone."""
    rows = queries.traffic(source_path).run(con)
    if rows.is_empty():
        basic.section("Traffic")
        basic.note(texts.NO_TRAFFIC)
        return
    basic.section("Traffic", texts.traffic_answer(rows))
    sized = rows.with_columns(
        _sizes(rows, "median_message_bytes").alias("median_message"),
        _sizes(rows, "largest_message_bytes").alias("largest_message"),
        _sizes(rows, "total_bytes").alias("moved"),
    )
    tables.table(sized, _TRAFFIC)
    between = queries.between_nodes(source_path).run(con)
    if between.height:
        basic.section("Between nodes", "derived, most first")
        tables.table(between.with_columns(_sizes(between, "total_bytes").alias("moved")).head(12), _BETWEEN)
        tables.csv_button(between, "nccl_between_nodes")
        basic.note(texts.DERIVED)


def _sizes(rows: pl.DataFrame, name: str) -> pl.Series:
    return pl.Series([None if size is None else network.size_text(int(size)) for size in rows[name]], dtype=pl.String)
