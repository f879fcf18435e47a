"""Constants of a generation are what its tables say together, and say so without any one of them."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.estimate.calibration.pooled import STARTS, pool, residuals
from sweepscope.pipeline.estimate.physics.profile import load_profiles


@pytest.mark.parametrize("generation", sorted(STARTS))
def test_bundled_constants_are_those_that_the_tables_give(generation: str) -> None:
    found, bundled = pool(generation), load_profiles()[generation]
    assert {name: getattr(bundled, name) for name in found} == pytest.approx(found, rel=0.05)


def test_a_table_that_is_left_out_has_no_say() -> None:
    assert pool("hopper", without=("llm_foundry",)) != pool("hopper")
    assert pool("hopper", without=("selene_megatron",)) == pool("hopper")  # on A100
    assert not residuals("mlperf_training", "hopper", {}).size  # cuDNN's attention tells nothing of PyTorch's
