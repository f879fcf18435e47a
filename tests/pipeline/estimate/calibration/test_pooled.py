"""Constants of a generation are what its tables say together, and say so without any one of them."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.estimate.calibration.pooled import STARTS, pool, residuals
from sweepscope.pipeline.estimate.physics.profile import load_profiles


@pytest.mark.slow
@pytest.mark.parametrize("generation", sorted(STARTS))
def test_bundled_constants_are_those_that_the_tables_give(generation: str) -> None:
    found, bundled = pool(generation), load_profiles()[generation]
    assert {name: getattr(bundled, name) for name in found} == pytest.approx(found, rel=0.05)


def test_a_table_that_is_left_out_has_no_say() -> None:
    assert pool("hopper", without=("llm_foundry",)) != pool("hopper")
    assert pool("hopper", without=("selene_megatron",)) == pool("hopper")  # on A100
    # cuDNN's attention has a share of its own: PyTorch's tells nothing of it
    tuned, other = (residuals("mlperf_training", "hopper", {"attention_efficiency": share}) for share in (0.1, 0.4))
    assert tuned.tolist() == other.tolist()


def test_what_a_table_has_in_common_does_not_pass_for_attention() -> None:
    # InternEvo's rows of 2,048 tokens are slower together: without llm-foundry's long sequences, attention stays.
    assert pool("ampere", without=("llm_foundry",))["attention_efficiency"] > 0.3
