from __future__ import annotations

import polars as pl
import pytest

from sweepscope.dashboard.view_models import compare, compare_curves, compare_losses, compare_speed
from sweepscope.dashboard.view_models.compare import Line
from sweepscope.dashboard.view_models.curves import MEASURES
from tests.dashboard.compare_rows import compared, estimated, failed, subject


def settings(*rows: tuple[str, str, str]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=["run_id", "name", "value"], orient="row")


def test_unknown_runs_leave_no_column_and_no_gap_in_the_letters() -> None:
    found = compare.subjects([("x",), ("a1",), ("b1",)], pl.DataFrame([compared("a1"), compared("b1")]))
    assert [(one.letter, one.run_ids) for one in found] == [("A", ["a1"]), ("B", ["b1"])]


def test_only_what_differs_is_shown_and_what_is_not_stated_is_no_zero() -> None:
    columns = [subject("A", compared(tp=8, dp=2, nccl_version=None)), subject("B", compared(nccl_version="2.21"))]
    lines = compare.configuration_lines(columns)
    layout = compare.folded(lines["Layout"])
    assert [line.name for line in layout.shown] == ["dp", "tp"]
    assert {line.name for line in layout.equal} >= {"pp", "mbs", "gas"}
    assert compare.folded(lines["Software"]).shown == [Line("nccl_version", "NCCL", (None, "2.21"))]
    assert not any(line.name == "cluster" for line in lines["Place"]), "nobody states it"


def test_the_values_of_a_group_are_listed_once_each() -> None:
    columns = [
        subject("A", compared(tp=4), compared("b", tp=8), compared("c", tp=4)),
        subject("B", compared("d", tp=8)),
    ]
    (tp,) = (line for line in compare.configuration_lines(columns)["Layout"] if line.name == "tp")
    assert tp.texts == ("4, 8", "8")


def test_raw_settings_that_one_framework_alone_has_are_folded() -> None:
    columns = [subject("A", compared("a1")), subject("B", compared("b1"))]
    raw = compare.raw_lines(
        columns,
        settings(
            ("a1", "tp", "8"),
            ("a1", "micro_batch_size", "8"),
            ("b1", "micro_batch_size", "4"),
            ("a1", "steps_planned", "40"),
            ("b1", "steps_planned", "10"),
            ("a1", "use_flash_attn", "True"),
            ("b1", "use_flash_attn", "False"),
            ("a1", "lr", "1e-4"),
            ("b1", "lr", "1e-4"),
            ("b1", "compile", "true"),
        ),
    )
    found = compare.folded(raw, is_raw=True)
    named = [line.label for line in found.shown]
    assert named == ["micro_batch_size", "Steps planned", "use_flash_attn"], (
        "tp fills a column; others keep their framework's spelling"
    )
    assert [line.name for line in found.equal] == ["lr"]
    assert [line.name for line in found.alone] == ["compile"]


def test_runs_are_grouped_by_what_splits_them_into_a_few() -> None:
    columns = [
        subject("A", compared("a", framework="nanotron")),
        subject("B", compared("b", framework="nanotron", tp=2)),
        subject("C", compared("c", framework="megatron", tp=4)),
    ]
    ways = compare.groupings(columns)
    assert ways["framework"] == (("a", "b"), ("c",))
    assert "tp" not in ways, "each run would be a group of its own"
    assert compare.groupings(columns[:2]) == {}


def test_one_model_on_one_accelerator_is_compared_by_throughput() -> None:
    race = compare_speed.race([subject("A", compared()), subject("B", compared("b", tokens_per_s_per_gpu=7689.0))])
    assert race.measure == "throughput"
    assert [standing.subject.letter for standing in race.standings] == ["B", "A"]
    assert race.lead == pytest.approx(0.1)


@pytest.mark.parametrize("other", [{"accelerator": "H100-SXM-80GB"}, {"model": "Llama 70B", "params": 70_000_000_000}])
def test_other_models_and_accelerators_are_compared_by_utilisation(other: dict[str, object]) -> None:
    race = compare_speed.race([subject("A", compared(mfu=0.2)), subject("B", compared("b", mfu=0.3, **other))])
    assert race.measure == "utilisation"
    assert race.lead == pytest.approx(0.1)


def test_a_published_mfu_counts_where_none_can_be_computed() -> None:
    printed = compared("p", origin="published", mfu=None, mfu_logged=0.41, tokens_per_s_per_gpu=None)
    race = compare_speed.race([subject("A", compared()), subject("B", printed)])
    assert race.measure == "utilisation"
    assert [standing.value for standing in race.standings] == [0.41, 0.216]
    other = compare_speed.race([subject("A", printed), subject("B", {**printed, "run_id": "q", "mfu_logged": 0.38})])
    assert other.measure == "utilisation"
    assert other.lead == pytest.approx(0.03)


@pytest.mark.parametrize("figure", [{"mfu": None, "mfu_logged": 0.5}, {"mfu": 1.02}])
def test_what_a_trainer_prints_and_what_no_hardware_reaches_is_no_utilisation(figure: dict[str, object]) -> None:
    race = compare_speed.race([subject("A", compared()), subject("B", compared("b", accelerator=None, **figure))])
    assert race.measure == "utilisation"
    assert [one.letter for one in race.without] == ["B"]


def test_a_failed_run_takes_no_part_in_the_race() -> None:
    race = compare_speed.race([subject("A", failed()), subject("B", compared())])
    assert [one.letter for one in race.without] == ["A"]
    assert len(race.standings) == 1
    assert compare_speed.race([subject("A", failed())]).standings == ()


def test_the_spread_of_a_group_is_its_noise() -> None:
    group = [compared(str(speed), tokens_per_s_per_gpu=float(speed)) for speed in (90, 100, 110)]
    race = compare_speed.judged(
        compare_speed.race([subject("A", *group), subject("B", compared(tokens_per_s_per_gpu=95.0))]), None
    )
    assert race.noise == pytest.approx(0.2)
    assert race.is_within_noise


@pytest.mark.parametrize("changes", [{}, {"gbs_tokens": 163_840}, {"num_gpus": 32}, {"step_time_s": 1.2}])
def test_gains_add_up_to_how_much_longer_the_second_takes_for_a_token(changes: dict[str, object]) -> None:
    first, second = estimated(step_time_s=2.5), estimated("b", **changes)
    found = compare_losses.difference(first, second)
    per_token = [row["step_time_s"] * row["num_gpus"] / row["gbs_tokens"] for row in (first, second)]
    assert found.is_same_work
    assert found.total == pytest.approx(per_token[1] / per_token[0] - 1, abs=2e-3)  # parts below half a per mille


def test_a_part_of_a_much_slower_step_does_not_shrink() -> None:
    # ten times slower for a reason that the estimate does not know: its other parts took as long as the first one's
    found = compare_losses.difference(estimated(step_time_s=2.0), estimated("b", step_time_s=20.0))
    named = {term.term: term.gain for term in found.terms}
    assert named["dp"] == pytest.approx(0, abs=1e-9)
    assert found.unexplained == pytest.approx(9.0)


def test_other_models_are_compared_in_points_of_their_own_step() -> None:
    found = compare_losses.difference(estimated(), estimated("b", model="Llama 70B"))
    assert not found.is_same_work


def test_without_a_step_time_the_estimates_are_compared() -> None:
    found = compare_losses.difference(estimated(step_time_s=None), estimated("b"))
    assert found.is_estimated
    assert found.unexplained == 0
    assert found.total == pytest.approx(0, abs=1e-9)


def test_what_is_saved_and_what_is_paid_are_told_apart() -> None:
    parts = {"est_time_dp_s": 0.1, "est_time_tp_s": 0.3, "est_step_time_s": 2.1, "est_mfu": 0.4 * 2 / 2.1}
    found = compare_losses.difference(estimated(**parts), estimated("b"))
    assert [term.term for term in compare_losses.largest(found.terms, sign=1)] == ["dp"]
    assert [term.term for term in compare_losses.largest(found.terms, sign=-1)] == ["tp"]


def points(run_id: str, times_s: list[float | None]) -> pl.DataFrame:
    steps = range(1, len(times_s) + 1)
    return pl.DataFrame(
        {
            "run_id": run_id,
            "step": steps,
            "place": steps,
            "steps_in_row": 1,
            "step_time_s": times_s,
            "step_time_max_s": times_s,
            "slowest_step": steps,
            "loss": None,
            "tokens_per_s_per_gpu": None,
            "mem_reserved_bytes": None,
        },
        schema_overrides=dict.fromkeys(("step_time_s", "step_time_max_s", "loss"), pl.Float64),
    )


def test_curves_share_an_axis_and_a_run_without_steps_has_none() -> None:
    steps = pl.concat([points("a1", [60.0, 2.0, 2.1]), points("b1", [12.0, 12.5, 12.2])], how="vertical_relaxed")
    columns = [subject("A", compared("a1")), subject("B", compared("b1")), subject("C", failed("c1"))]
    assert [measure.key for measure in compare_curves.measures(steps)] == ["time"]
    drawn = compare_curves.overlay(columns, steps, MEASURES["time"])
    assert drawn.letters == {"A", "B"}
    assert drawn.low == 0.0
    assert drawn.high > 12.5
    assert compare_curves.measures(steps.clear()) == []
