"""Products in FP8 and FP4, and under a power limit: what they gain, what stays as it is, what copies need."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sweepscope.pipeline.estimate.physics.compute import MOST_OF_PEAK, machine, power_factor, product_gain
from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.physics.memory import FP4_COPIES
from sweepscope.pipeline.estimate.physics.profile import choose_profile, load_profiles, with_values
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.reference.clusters import Precision, find_cluster
from sweepscope.pipeline.reference.models import find_model, shape_of

PLAIN = load_profiles()["default"]
AT = Layouts.of(dp=[8.0], tp=[2.0], pp=[4.0], mbs=[1.0], gas=[32.0], zero_stage=[1.0])


def question(precision: Precision, accelerator: str = "GB300", **constants: float) -> Question:
    row, cluster = find_model("Llama 3 70B"), find_cluster(accelerator)
    assert row is not None
    assert cluster is not None
    profile = with_values(choose_profile(cluster.generation, None), constants)
    return Question(shape_of(row), cluster, profile, 8192, precision)


def test_without_casts_products_gain_what_the_peak_promises() -> None:
    free = with_values(PLAIN, {"fp8_gain": 1.0})
    assert [product_gain(free, promised) for promised in (1.0, 2.0, 6.0)] == [1.0, 2.0, 6.0]


def test_casts_take_as_long_whatever_they_cast_to() -> None:
    eight, four = product_gain(PLAIN, 2.0), product_gain(PLAIN, 6.0)
    assert eight == pytest.approx(1.0 + PLAIN.fp8_gain)
    assert 1 / eight - 1 / 2 == pytest.approx(1 / four - 1 / 6)
    assert product_gain(PLAIN, 1.0) == 1.0


def test_scales_by_row_leave_a_part_of_the_time_gained() -> None:
    whole, half = (product_gain(with_values(PLAIN, {"gain_kept": kept}), 2.0) for kept in (1.0, 0.5))
    assert 1 - 1 / half == pytest.approx((1 - 1 / whole) / 2)
    assert product_gain(with_values(PLAIN, {"gain_kept": 0.5}), 1.0) == 1.0


def test_layers_in_16_bit_gain_nothing() -> None:
    layers = question("fp4").shape.num_layers
    fast, half, none = (machine(question("fp4", bf16_layers=kept)).flops for kept in (0, layers / 2, layers))
    assert none == machine(question("bf16")).flops
    assert 2 / half == pytest.approx(1 / fast + 1 / none)


@pytest.mark.parametrize(("accelerator", "promised"), [("GB200", 4), ("GB300", 6), ("MI355X", 10100 / 2500)])
def test_peaks_are_the_data_sheets_dense_ones(accelerator: str, promised: float) -> None:
    card = find_cluster(accelerator)
    assert card is not None
    assert card.peak_flops_fp4 / card.peak_flops == pytest.approx(promised)
    assert card.precisions == ("bf16", "fp8", "fp4")


def test_attention_and_head_stay_in_16_bit() -> None:
    wide, eight, four = (estimate(question(precision), AT) for precision in ("bf16", "fp8", "fp4"))
    for part in ("attention", "head", "elementwise"):
        in_16_bit, in_8, in_4 = (getattr(one.time, part) for one in (wide, eight, four))
        assert in_8 == pytest.approx(in_16_bit)
        assert in_4 == pytest.approx(in_16_bit)
    assert four.time.linear < 0.6 * eight.time.linear
    assert eight.time.linear < 0.6 * wide.time.linear


def test_weights_in_fp4_are_kept_beside_those_in_16_bit() -> None:
    eight, four = (estimate(question(precision), AT).memory for precision in ("fp8", "fp4"))
    kept = question("fp4").profile.weight_bytes
    assert np.asarray(four.weights) == pytest.approx(np.asarray(eight.weights) * (kept + FP4_COPIES) / kept)
    assert pytest.approx(1.125) == FP4_COPIES


def test_a_card_without_fp4_has_the_peak_of_fp8() -> None:
    card = find_cluster("H100-SXM-80GB")
    assert card is not None
    assert card.precisions == ("bf16", "fp8")
    assert card.peak_flops_of("fp4") == card.peak_flops_of("fp8")
    assert replace(card, peak_flops_fp4=2 * card.peak_flops_fp8).precisions[-1] == "fp4"


def test_products_follow_the_cube_root_of_the_power() -> None:
    asked = question("bf16", "B200")
    card = asked.cluster
    assert card.board_power_w is not None
    assert power_factor(card, asked.profile) == pytest.approx(1.0, abs=1e-3)
    assert power_factor(replace(card, board_power_w=card.board_power_w / 8), asked.profile) == pytest.approx(
        0.5, abs=1e-3
    )
    assert power_factor(replace(card, board_power_w=None), asked.profile) == 1.0
    assert power_factor(card, with_values(asked.profile, {"gemm_power_w_per_tflops": 0.0})) == 1.0


def test_no_power_makes_products_faster_than_the_peak_allows() -> None:
    asked = question("bf16", "H20-96GB")
    assert power_factor(asked.cluster, asked.profile) * asked.profile.gemm_peak_share == pytest.approx(MOST_OF_PEAK)
    weak = replace(asked, cluster=replace(asked.cluster, board_power_w=100.0))
    assert machine(weak).flops < machine(asked).flops
    assert machine(weak).attention_flops == machine(asked).attention_flops
