"""Intervals hold what they promise, records survive their file, and nothing is made up without comparable runs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.estimate.calibration.learn import look
from sweepscope.pipeline.estimate.calibration.published_tables import published_table
from sweepscope.pipeline.estimate.calibration.recipe_rows import gather_rows
from sweepscope.pipeline.estimate.calibration.recipes import RECIPES
from sweepscope.pipeline.estimate.learned.expected import expect
from sweepscope.pipeline.estimate.learned.penalty import FACTORS, Settings, fit_penalty, penalty_features
from sweepscope.pipeline.estimate.learned.placement_patterns import PATTERNS, pattern_codes
from sweepscope.pipeline.estimate.learned.record_file import find_record, read_record, render_record
from sweepscope.pipeline.estimate.learned.track_record import (
    ENOUGH,
    FEWEST,
    Residuals,
    TrackRecord,
    conformal_interval,
    learned_penalty,
    residual_map,
    residuals_by_pattern,
)
from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.physics.profile import (
    CALIBRATION,
    constants_digest,
    load_profiles,
    read_profile,
    with_values,
)
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import EXPECTATION, PHYSICS, UNSEEN, search
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.models import LLAMA_2_7B
from tests.pipeline.estimate.rows.test_estimate_rows import row


def question(profile: str = "hopper-nanotron") -> Question:
    cluster = find_cluster("H100-SXM-80GB")
    assert cluster is not None
    return Question(LLAMA_2_7B, cluster, load_profiles()[profile], 4096)


def test_an_80_percent_interval_holds_80_percent_of_what_comes_next() -> None:
    chance = np.random.default_rng(0)
    inside = [
        found.low <= np.exp(chance.normal()) <= found.high
        for _ in range(4000)
        if (found := conformal_interval(chance.normal(size=30), "")) is not None
    ]
    # 30 + 1 exchangeable places, 3 cut off at each end: 25 / 31.
    assert len(inside) == 4000
    assert np.mean(inside) == pytest.approx(25 / 31, abs=0.02)


def test_an_interval_exists_from_nine_runs_on() -> None:
    ratios = np.log(np.arange(1.0, FEWEST + 1))
    assert conformal_interval(ratios[:-1], "") is None
    found = conformal_interval(ratios, "nine")
    assert found is not None
    assert (found.low, found.middle, found.high, found.runs) == pytest.approx((1.0, 5.0, 9.0, 9))


def test_few_runs_of_a_pattern_borrow_from_its_place_then_from_all() -> None:
    several, one = np.zeros(ENOUGH - 1), np.ones(1)
    residuals = Residuals(
        {"PP over nodes · ZeRO-0": several, "PP over nodes · ZeRO-1": one, "DP only · ZeRO-0": 2 * np.ones(50)}
    )
    own, group = residuals.comparable("PP over nodes · ZeRO-1")
    assert (own.size, group) == (ENOUGH, "PP over nodes")
    assert residuals.comparable("DP only · ZeRO-0")[1] == "DP only · ZeRO-0"
    everything, group = residuals.comparable("TP in a node · ZeRO-2")
    assert (everything.size, group) == (ENOUGH + 50, "all layouts")
    found = residuals.interval("PP over nodes · ZeRO-1", "hopper-x")
    assert found is not None
    assert found.basis == "80% of 20 runs of hopper-x, PP over nodes"


def test_patterns_are_those_of_the_view() -> None:
    at = Layouts.of(
        dp=np.array([1.0, 2, 1, 4, 16]),
        tp=np.array([1.0, 16, 8, 4, 1]),
        pp=np.array([16.0, 1, 2, 1, 1]),
        zero_stage=np.array([0.0, 1, 0, 2, 3]),
    )
    assert [PATTERNS[code] for code in pattern_codes(at, 8)] == [
        "PP over nodes · ZeRO-0",
        "TP over nodes · ZeRO-1",
        "PP over nodes · ZeRO-0",
        "TP in a node · ZeRO-2",
        "DP only · ZeRO-3",
    ]


def test_the_map_names_the_slowest_pattern_first() -> None:
    codes = np.array([0, 0, 0, 19])
    residuals = residual_map(residuals_by_pattern(codes, np.log([4.0, 5.0, 6.0, 1.0])))
    assert [(entry["pattern"], entry["runs"]) for entry in residuals] == [
        ("PP over nodes · ZeRO-0", 3),
        ("DP only · ZeRO-3", 1),
    ]
    assert residuals[0]["median"] == pytest.approx(5.0)


def layouts() -> Layouts:
    dp = np.array([16.0, 8, 4, 2])
    return Layouts.of(dp=dp, tp=16 / dp, mbs=1, gas=256 / dp, zero_stage=1)


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    asked, at = question(), layouts()
    rows = np.repeat(penalty_features(asked, at, estimate(asked, at)), 30, axis=0)
    slow = np.where(rows[:, 3] > 1, 4.0, 1.0) * np.exp(np.random.default_rng(0).normal(0, 0.1, len(rows)))
    penalty = learned_penalty(fit_penalty(rows, slow), rows)
    given = TrackRecord(
        "hopper-own",
        {"learned_on": "runs"},
        time=Residuals({"DP only · ZeRO-0": np.array([0.1, 0.2])}),
        choices=frozenset({"ZeRO-1"}),
        penalty=penalty,
        needed=Residuals({"DP only · ZeRO-0": np.array([0.3])}),
        memory_factor=learned_penalty(fit_penalty(rows, 1 / slow, grid=FACTORS, cells=np.arange(len(rows)) % 3), rows),
    )
    path = tmp_path / "hopper-own.json"
    path.write_text(render_record(given))
    got = read_record(path)
    assert got.penalty is not None
    assert (got.profile, got.about) == ("hopper-own", {"learned_on": "runs"})
    assert got.penalty.slowdown(rows) == pytest.approx(penalty.slowdown(rows), rel=1e-3)
    assert got.time.by_pattern["DP only · ZeRO-0"].tolist() == [0.1, 0.2]
    assert got.choices == {"ZeRO-1"}
    assert got.needed.by_pattern["DP only · ZeRO-0"].tolist() == [0.3]
    assert given.memory_factor is not None
    assert got.memory_factor is not None
    assert got.memory_factor.model.settings.kind == "factor"
    assert got.memory_factor.slowdown(rows) == pytest.approx(given.memory_factor.slowdown(rows), rel=1e-3)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"about": {}}', '{"about": {}, "time": 1, "memory": {}, "penalised": {}, "choices": []}']
)
def test_a_damaged_record_is_one_line_with_the_remedy(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match="Fit it again: sweepscope calibrate"):
        read_record(path)


def test_a_record_of_other_features_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(
        '{"about":{},"time":{},"memory":{},"penalised":{},"choices":[],"penalty":{"features":["colour"],"points":[]}}'
    )
    with pytest.raises(InputError, match="learned on other features"):
        read_record(path)


def test_a_penalty_is_silent_far_beyond_what_it_was_learned_on() -> None:
    asked, at = question(), layouts()
    rows = penalty_features(asked, at, estimate(asked, at))
    penalty = learned_penalty(fit_penalty(rows, np.full(4, 2.0), settings=Settings(noise=1e-9)), rows)
    far = Layouts.of(dp=1024, gas=4)
    assert penalty.slowdown(rows) == pytest.approx(np.full(4, 2.0))
    assert np.isnan(penalty.slowdown(penalty_features(asked, far, estimate(asked, far)))).all()


def test_every_bundled_record_belongs_to_a_profile_and_can_be_read() -> None:
    paths = sorted(CALIBRATION.glob("*.json"))
    assert "hopper-nanotron" in [path.stem for path in paths]
    for path in paths:
        assert path.with_suffix(".toml").exists()
        record = find_record(load_profiles()[path.stem])
        assert record is not None
        assert record.time.size == record.about["time"]["rows"]


def test_without_comparable_runs_nothing_is_made_up() -> None:
    asked, at = question("hopper"), layouts()
    expected = expect(asked, at, estimate(asked, at))
    assert all(values == [None] * 4 for values in expected.values())


def test_the_playbook_s_framework_is_penalised_where_pipelines_cross_nodes() -> None:
    asked = question()
    at = Layouts.of(
        dp=np.array([16.0, 2]),
        tp=np.array([4.0, 4]),
        pp=np.array([1.0, 8]),
        gas=np.array([16.0, 128]),
        zero_stage=np.array([1.0, 0]),
    )
    expected = expect(asked, at, estimate(asked, at))
    single, piped = expected["est_penalty"]
    assert single < 1.5
    assert piped > 2.5
    assert "PP over nodes · ZeRO-0" in expected["est_interval_basis"][1]
    for place in range(2):
        assert (
            expected["est_step_time_lo_s"][place]
            < expected["expected_step_time_s"][place]
            < expected["est_step_time_hi_s"][place]
        )
        assert expected["est_mfu_lo"][place] < expected["est_mfu_hi"][place]
        assert expected["est_penalty_lo"][place] < expected["est_penalty"][place] < expected["est_penalty_hi"][place]


def test_no_run_is_promised_more_speed_than_comparable_ones_showed() -> None:
    asked = question()
    record = find_record(asked.profile)
    assert record is not None
    rows = search(Request(asked, num_gpus=64, gbs=256), top=200).layouts
    at = Layouts.of(
        **{name: rows[name].to_numpy().astype(np.float64) for name in ("dp", "tp", "pp", "gas", "mbs")},
        zero_stage=rows["zero_stage"].to_numpy().astype(np.float64),
    )
    found, predicted = pl.DataFrame(expect(asked, at, estimate(asked, at))), estimate(asked, at)
    patterns = [PATTERNS[code] for code in pattern_codes(at, asked.cluster.gpus_per_domain)]
    fastest = np.array([record.time.fastest(name) for name in patterns]) * predicted.step_time_s
    unbound = [record.penalised.interval(name, "") for name in patterns]
    low = found["expected_step_time_s"].to_numpy() * np.array(
        [one.low if one is not None else np.nan for one in unbound]
    )
    least = np.minimum(np.maximum(low, fastest), found["expected_step_time_s"].to_numpy())
    assert (low < fastest).any()  # some needed the bound
    assert (low > fastest).any()  # and some did not
    assert found["est_step_time_lo_s"].to_numpy() == pytest.approx(least)


def test_a_choice_that_no_run_made_has_no_interval() -> None:
    asked = question()
    at = Layouts.of(dp=16, gas=16, zero_stage=np.array([1.0, 3, 1, 1]), recompute=np.array([0.0, 0, 2, 0]), vpp=1)
    expected = expect(asked, at, estimate(asked, at))
    assert [value is None for value in expected["est_penalty"]] == [False, True, True, False]
    assert [value is None for value in expected["est_step_time_lo_s"]] == [False, True, True, False]
    assert [value is None for value in expected["est_mem_hi_bytes"]] == [False, True, True, False]


def test_rows_carry_the_expectation_and_physics_stays_as_it_is() -> None:
    frame = pl.DataFrame([row(framework="nanotron"), row(framework="unheard-of")])
    got = estimate_frame(frame)
    assert got["est_penalty"].is_null().to_list() == [False, True]
    assert "other frameworks" in got["est_interval_basis"][1]
    times = [name for name in got.columns if name.startswith("est_time_")]
    assert got.select(pl.sum_horizontal(times)).to_series().to_list() == pytest.approx(got["est_step_time_s"].to_list())
    assert got["expected_step_time_s"][0] == pytest.approx(got["est_penalty"][0] * got["est_step_time_s"][0])


def test_search_ranks_by_expectation_where_the_framework_has_a_record() -> None:
    asked = question()
    request = Request(asked, num_gpus=64, gbs=256)
    expected, physics = search(request), search(request, by=PHYSICS)
    assert (expected.ranked_by, physics.ranked_by) == (EXPECTATION, PHYSICS)
    assert expected.layouts["expected_step_time_s"].is_sorted()
    assert physics.layouts["est_step_time_s"].is_sorted()
    assert expected.layouts["expected_step_time_s"][0] <= physics.layouts["expected_step_time_s"].min()
    assert set(expected.layouts["zero_stage"]) <= {0, 1}  # the playbook ran no other
    assert expected.pruned[UNSEEN] > 0
    assert UNSEEN not in physics.pruned
    unknown = search(Request(question("hopper"), num_gpus=64, gbs=256))
    assert unknown.ranked_by == PHYSICS
    assert unknown.layouts["est_penalty"].is_null().all()


REMEDY = "The physics or its constants changed: sweepscope calibrate --published --out data/calibration"


def test_bundled_records_were_learned_with_the_constants_that_are_bundled() -> None:
    for path in sorted(CALIBRATION.glob("*.json")):
        assert read_record(path).about["constants"] == constants_digest(path.with_suffix(".toml")), f"{path}: {REMEDY}"


def test_the_bundled_penalty_belongs_to_the_physics_in_force() -> None:
    profile = load_profiles()["hopper-nanotron"]
    record = find_record(profile)
    assert record is not None
    (recipe,) = [one for one in RECIPES if one.profile == "hopper-nanotron"]
    rows = gather_rows(recipe, published_table(recipe.dataset))
    ratios = np.log(rows.step_time_s / look(rows, {name: getattr(profile, name) for name in recipe.time}).step_time_s)
    values = np.concatenate(list(record.time.by_pattern.values()))
    # Those of the record leave one model out of the fit, so they agree in the middle only.
    assert np.nanmedian(ratios) == pytest.approx(np.median(values), abs=0.03), REMEDY


def test_a_record_of_other_constants_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("[about]\n[constants]\ngemm_peak_share = 0.7\n")
    profile = read_profile(path, base=load_profiles()["default"])
    record = TrackRecord("own", {"constants": constants_digest(path)})
    path.with_suffix(".json").write_text(render_record(record))
    assert find_record(profile) is not None
    assert find_record(with_values(profile, {"is_flash": False})) is not None  # a run's own choice, not the fit's
    path.write_text("[about]\n[constants]\ngemm_peak_share = 0.6\n")
    os.utime(path, ns=(1, 1))
    assert find_record(profile) is None
