"""Pure parts of the page on the network: bandwidth lines, ranks of a hang, charts of them."""

from __future__ import annotations

import polars as pl

from sweepscope.dashboard.charts import network as charts
from sweepscope.dashboard.format.theme import DARK, LIGHT
from sweepscope.dashboard.text import hang as hang_texts
from sweepscope.dashboard.text import network as texts
from sweepscope.dashboard.view_models import network
from sweepscope.schemas.vocab.nccl import RULE
from tests.nccl_rows import hang_row

_COUNTERS = {
    "rank": pl.Int64,
    "last_enqueued_seq": pl.Int64,
    "last_started_seq": pl.Int64,
    "last_completed_seq": pl.Int64,
}
NOT_RECORDED = pl.DataFrame(schema=_COUNTERS)


def bandwidths(*lines: tuple[int | None, int, int]) -> pl.DataFrame:
    """Rows for (nodes, ranks, number of sizes)."""
    return pl.DataFrame(
        [
            {
                "op": "AllReduce",
                "num_nodes": nodes,
                "nranks": ranks,
                "fabric": "H100",
                "message_bytes": 2 ** (20 + i),
                "busbw_bytes_per_s": 1e9 * (i + 1),
                "best_busbw_bytes_per_s": 2e9 * (i + 1),
                "files": 2,
            }
            for nodes, ranks, sizes in lines
            for i in range(sizes)
        ],
        schema_overrides={"num_nodes": pl.Int64},
    )


def states(**changes: object) -> dict[int, str]:
    found = network.rank_states(hang_row(**changes), NOT_RECORDED)
    return dict(found.select("rank", "state").iter_rows())


def test_at_most_six_lines_and_those_with_most_sizes_stay() -> None:
    rows = bandwidths(*[(2**i, 2**i * 8, 3) for i in range(6)], (None, 4, 1), (64, 512, 9))
    _, kept, left_out = network.bandwidth_lines(rows)
    assert kept == [
        "1 node · 8 ranks",
        "2 nodes · 16 ranks",
        "4 nodes · 32 ranks",
        "8 nodes · 64 ranks",
        "16 nodes · 128 ranks",
        "64 nodes · 512 ranks",
    ]
    assert left_out == 2


def test_unlike_fabrics_are_lines_of_their_own() -> None:
    other = bandwidths((2, 16, 3)).with_columns(fabric=pl.lit("A100, OFI"))
    named, kept, _ = network.bandwidth_lines(pl.concat([bandwidths((1, 8, 3), (2, 16, 3)), other]))
    assert sorted(kept) == ["1 node · 8 ranks", "2 nodes · 16 ranks · A100, OFI", "2 nodes · 16 ranks · H100"]
    assert named.group_by("line").len()["len"].to_list() == [3, 3, 3]


def test_the_line_that_reached_most_is_drawn_however_few_its_sizes() -> None:
    rows = bandwidths(*[(2**i, 2**i * 8, 3) for i in range(7)], (100, 800, 1))
    fastest = pl.when(pl.col("num_nodes") == 100).then(9e12).otherwise("best_busbw_bytes_per_s")
    _, kept, left_out = network.bandwidth_lines(rows.with_columns(best_busbw_bytes_per_s=fastest))
    assert kept[-1] == "100 nodes · 800 ranks"
    assert (len(kept), left_out) == (6, 2)


def test_the_suspect_comes_before_what_else_is_true_of_a_rank() -> None:
    found = network.rank_states(hang_row(), NOT_RECORDED)
    assert found.row(3, named=True)["state"] == "suspect"
    assert found.row(3, named=True)["detail"] == "suspect, no output"
    assert found["state"].to_list().count("waited") == 7


def test_ranks_that_no_list_names_are_unknown_within_a_group_counted_from_0() -> None:
    assert states(ranks_reporting="0,1", ranks_silent=None, suspect=None, num_ranks=4) == {
        0: "waited",
        1: "waited",
        2: "unknown",
        3: "unknown",
    }
    assert states(ranks_reporting="8,9", ranks_silent="10", suspect=None, num_ranks=4) == {
        8: "waited",
        9: "waited",
        10: "silent",
    }
    assert states(ranks_reporting=None, ranks_silent=None, suspect=None, num_ranks=None) == {}


def test_the_recorders_counters_stand_beside_the_rank() -> None:
    recorded = pl.DataFrame(
        {"rank": [3], "last_enqueued_seq": [60], "last_started_seq": [-1], "last_completed_seq": [60]}
    )
    found = network.rank_states(hang_row(), recorded)
    assert found["last_enqueued_seq"].to_list() == [None, None, None, 60, None, None, None, None]


def test_a_hang_without_suspect_says_so_and_why() -> None:
    row = hang_row(suspect=None, suspect_reason="not determinable: all 8 ranks entered")
    assert hang_texts.hang_answer(row) == "**Not determinable.** All 8 ranks entered."
    assert hang_texts.hang_answer(hang_row(suspect="2,3", suspect_reason="did not join")) == (
        "**Suspect: ranks 2, 3.** Did not join."
    )


def test_the_chart_draws_a_line_per_node_count_with_its_sizes() -> None:
    named, lines, _ = network.bandwidth_lines(bandwidths((1, 8, 4), (2, 16, 2)))
    hovers = [texts.bandwidth_hover(row) for row in named.iter_rows(named=True)]
    figure = charts.draw_bandwidth(named, lines, hovers, DARK)
    assert [list(trace.y) for trace in figure.data] == [[1, 2, 3, 4], [1, 2]]
    assert "best 2.0 GB/s of 2 files" in figure.data[0].hovertext[0]
    assert {note.text for note in figure.layout.annotations} == {"<b>1 node · 8 ranks</b>", "<b>2 nodes · 16 ranks</b>"}


def test_a_long_fabric_is_cut_in_the_label_only() -> None:
    long = bandwidths((2, 16, 3)).with_columns(fabric=pl.lit("NVIDIA A100-SXM4-40GB, AWS Libfabric"))
    named, lines, _ = network.bandwidth_lines(pl.concat([bandwidths((2, 16, 3)), long]))
    hovers = [texts.bandwidth_hover(row) for row in named.iter_rows(named=True)]
    figure = charts.draw_bandwidth(named, lines, hovers, DARK)
    labels = {note.text for note in figure.layout.annotations}
    assert labels == {"<b>2 nodes · 16 ranks · H100</b>", "<b>2 nodes · 16 ranks · NVID…</b>"}
    assert any("AWS Libfabric" in trace.hovertext[0] for trace in figure.data)


def test_every_rank_has_one_square_whatever_the_size() -> None:
    for size in (1, 8, 100, 1000):
        ranks = ",".join(map(str, range(1, size)))
        found = network.rank_states(
            hang_row(num_ranks=size, ranks_reporting=ranks, ranks_silent="0", suspect="0"), NOT_RECORDED
        )
        figure = charts.draw_ranks(found, LIGHT)
        places = [(x, y) for trace in figure.data for x, y in zip(trace.x, trace.y, strict=True)]
        assert len(places) == len(set(places)) == size


def test_init_times_have_a_row_per_size_and_a_median() -> None:
    rows = pl.DataFrame({"nranks": [8, 8, 16], "init_time_s": [1.0, 3.0, 5.0]})
    figure = charts.draw_init(rows, ["a", "b", "c"], LIGHT)
    assert [list(trace.x) for trace in figure.data] == [[5.0], [1.0, 3.0]]
    assert [shape.x0 for shape in figure.layout.shapes] == [2.0]


def test_every_line_is_named_within_the_axis_when_all_end_at_its_foot() -> None:
    rows = bandwidths(*[(2**i, 2**i * 8, 2) for i in range(5)]).with_columns(
        pl.when(pl.col("num_nodes") == 1).then(4e11).otherwise(1e9).alias("busbw_bytes_per_s"),
        best_busbw_bytes_per_s=4e11,
    )
    named, lines, _ = network.bandwidth_lines(rows)
    figure = charts.draw_bandwidth(named, lines, [""] * named.height, LIGHT)
    low, high = figure.layout.yaxis.range
    assert len(figure.layout.annotations) == 5
    assert all(low < note.y < high for note in figure.layout.annotations)


def test_size_ticks_are_at_most_seven_and_at_powers_of_two() -> None:
    named, lines, _ = network.bandwidth_lines(bandwidths((1, 8, 14)))
    axis = charts.draw_bandwidth(named, lines, [""] * named.height, LIGHT).layout.xaxis
    assert list(axis.ticktext) == ["1 MiB", "4 MiB", "16 MiB", "64 MiB", "256 MiB", "1 GiB", "4 GiB"]


def test_peaks_are_bounded_by_the_slower_of_links_and_network() -> None:
    columns = ("accelerator", "link_bytes_per_s", "network_bytes_per_s", "ranks_per_node", "num_nodes")
    rows = pl.DataFrame(
        [("H100-SXM-80GB", 450e9, 50e9, 8, 4), ("A100-SXM-80GB", 300e9, 25e9, 16, 1), ("L40S", 32e9, 12.5e9, 8, 2)],
        schema=columns,
        orient="row",
    )
    assert network.peaks(rows) == [
        ("link of H100-SXM-80GB", 450e9),
        ("network of 8 × H100-SXM-80GB", 400e9),
        ("link of A100-SXM-80GB", 300e9),
    ]


def test_every_rule_has_a_short_name_for_the_answer() -> None:
    assert set(texts.RULE_SHORT) == set(RULE)


def test_a_reason_that_ends_a_sentence_gets_no_second_full_stop() -> None:
    row = hang_row(suspect="3", suspect_reason="rank 3 failed before: RuntimeError: Killed.")
    assert hang_texts.hang_answer(row) == "**Suspect: rank 3.** Rank 3 failed before: RuntimeError: Killed."
