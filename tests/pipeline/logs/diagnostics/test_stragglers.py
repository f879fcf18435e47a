"""Slow ranks and hosts, by name and with figures."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.diagnostics.stragglers import printing, reported
from tests.pipeline.ingest_in_memory import tables_of
from tests.pipeline.logs.steps_table import said

REPORT = (
    "INFO:megatron.core.utils:[2024-03-14 23:07:56] | MnRtt/Rnk: {}ms/8 | MxRtt/Rnk: {}ms/{} | MnPwr/Rnk: 601796W/8 | "
    "MxPwr/Rnk: 683801W/18 | MnTmp/Rnk: 52C/0 | MxTmp/Rnk: 65C/21 | MnUtl/Rnk: 97%/8 | MxUtl/Rnk: 100%/6 | MnClk/Rnk: "
    "1950MHz/28 | MxClk/Rnk: 1980MHz/0 | MnDRtt/Rnk: 14.27ms/23 | MxDRtt/Rnk: 34.65ms/3 | MnEtpt/Rnk: 296.02TF/0 | "
    "MxEtpt/Rnk: 297.32TF/8"
)
WARNING = "STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance. Affected ranks: {}"


def texts(*lines: str) -> list[str]:
    return reported(said("straggler", *lines))["text"].to_list()


class TestMegatron:
    def test_one_rank_slows_all(self) -> None:
        lines = [REPORT.format("1000.00", "1500.00", 20)] * 3 + [REPORT.format("1000.00", "1600.00", 4)]
        found = reported(said("straggler", *lines))
        assert found.select("rank", "line_no", "text").rows() == [
            (
                20,
                1,
                "rank 20 was the slowest in 3 of 4 reports: 1500.0 ms an iteration against 1000.0 ms of the fastest rank, "
                "1.5 times",
            )
        ]

    def test_healthy_ranks_differ_by_little(self) -> None:
        assert texts(REPORT.format("3453.08", "3468.20", 0)) == []

    def test_another_rank_every_time_is_no_straggler(self) -> None:
        assert texts(*(REPORT.format("1000.00", "1500.00", rank) for rank in range(8))) == []


class TestScores:
    def test_score_lines_name_rank_host_and_figure(self) -> None:
        found = reported(said("straggler", "  Rank=76 Node=h100-001 Score=0.55", "  Rank=76 Node=h100-001 Score=0.61"))
        assert found.select("rank", "host", "line_no", "text").rows() == [
            (
                76,
                "h100-001",
                1,
                "rank 76 on h100-001 is slower than the others: its score fell to 0.55 (1 is full speed)",
            )
        ]

    def test_warnings_name_ranks_in_both_spellings(self) -> None:
        new = WARNING.format("{StragglerId(rank=3, node='n7'), StragglerId(rank=5, node='n9')}")
        assert texts(new, new) == [
            "rank 3 on n7 is slower than the others; warnings: 2",
            "rank 5 on n9 is slower than the others; warnings: 2",
        ]
        assert texts(WARNING.format("[76, 13]")) == [
            "rank 13 is slower than the others; warnings: 1",
            "rank 76 is slower than the others; warnings: 1",
        ]

    def test_the_ranks_reported_most_are_named(self) -> None:
        lines = [f"  Rank={rank} Node=n Score=0.60" for rank in range(30)] + ["  Rank=29 Node=n Score=0.50"]
        found = reported(said("straggler", *lines))
        assert found["rank"].to_list() == [29, 0, 1, 2, 3]


def test_no_reports() -> None:
    assert texts() == []


def printed(costs: dict[int, list[float]], column: str = "step_time_s") -> pl.DataFrame:
    rows = [
        {
            "run_id": "a",
            "source_path": "a.log",
            "line_no": 10 * step + rank,
            "ts": None,
            "step": step,
            "rank": rank,
            column: cost,
        }
        for rank, values in costs.items()
        for step, cost in enumerate(values, 1)
    ]
    columns = ("step_time_s", "tokens_per_s_per_gpu")
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(
        pl.lit(None, pl.Float64).alias(name) for name in columns if name != column
    )


class TestPrinting:
    def test_a_rank_whose_steps_take_longer(self) -> None:
        found = printing(printed({0: [1.0] * 6, 1: [1.0] * 6, 2: [1.3] * 6, 3: [1.01] * 6}))
        assert found.select("rank", "line_no", "text").rows() == [
            (
                2,
                12,
                "rank 2 takes 1.29 times the median rank's time for a step (median over 6 steps that several ranks print)",
            )
        ]

    def test_throughput_tells_too(self) -> None:
        slow = printed({0: [9000.0] * 6, 1: [9000.0] * 6, 2: [6000.0] * 6}, "tokens_per_s_per_gpu")
        assert printing(slow)["rank"].to_list() == [2]

    def test_one_slow_step_is_no_straggler(self) -> None:
        assert printing(printed({0: [1.0] * 6, 1: [1.0] * 6, 2: [1.0] * 5 + [9.0]})).is_empty()

    def test_two_ranks_cannot_tell_which_is_slow(self) -> None:
        assert printing(printed({0: [1.0] * 6, 1: [2.0] * 6})).is_empty()

    def test_few_steps_tell_nothing(self) -> None:
        assert printing(printed({0: [1.0] * 3, 1: [1.0] * 3, 2: [2.0] * 3})).is_empty()


STEP = (
    "[rank{0}]:[titan] 2026-05-19 19:36:{1:02d},730 - root - INFO - step: {1:2d}  loss:  7.01706  grad_norm: 31.3750  memory: "
    "169.20GiB(94.87%)  tps: {2:,}  tflops: 812.70  mfu: 36.12%\n"
)


def test_ranks_of_a_log_and_the_detectors_lines_become_one_event_each() -> None:
    text = "".join(STEP.format(rank, step, 6000 if rank == 2 else 9000) for step in range(1, 9) for rank in range(4))
    tables = tables_of({"a.log": text + (WARNING.format("[1]") + "\n") * 50})
    found = tables["events"].filter(kind="straggler").sort("rank")
    assert found.select("rank", "line_no").rows() == [(1, 33), (2, 3)]
    assert tables["runs"].height == 1
