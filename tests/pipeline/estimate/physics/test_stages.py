"""Where layers stand in a pipeline, against what nanotron's rule gives by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sweepscope.pipeline.estimate.physics.stages import place_layers, stage_layers
from sweepscope.pipeline.reference.models import LLAMA_2_7B

# One layer costs 4 h h + 3 h 4h = 16 h h; a vocabulary of 64 h makes the head cost exactly four layers.
SMALL = replace(
    LLAMA_2_7B, num_layers=16, hidden_size=2048, num_heads=32, num_kv_heads=32, ffn_hidden_size=8192, vocab_size=131072
)


@pytest.mark.parametrize(
    ("pp", "layers"),
    [
        (1, [16]),
        (2, [10, 6]),  # 20 units in all: ten fill the first half exactly
        (4, [5, 5, 5, 1]),
        (8, [3, 2, 3, 2, 3, 2, 1, 0]),  # shares of 2.5; the head has the last stage for itself
    ],
)
def test_a_stage_takes_the_block_that_fills_its_share(pp: int, layers: list[int]) -> None:
    assert place_layers(SMALL, pp, placement="by_cost") == layers


def test_the_first_stages_are_the_fuller_ones() -> None:
    # Head: 131072 / (4 h + 3 ff) = 3.56 layers. 31.56 / 2 = 15.8: sixteen layers, then twelve and the head.
    wide = replace(SMALL, num_layers=28, hidden_size=3072)
    assert place_layers(wide, 2, placement="by_cost") == [16, 12]
    assert place_layers(wide, 4, placement="by_cost") == [8, 8, 8, 4]
    assert place_layers(wide, 8, placement="by_cost") == [4] * 7 + [0]


@pytest.mark.parametrize(
    ("layers", "pp", "counts"),
    [
        (126, 16, [7, *[8] * 14, 7]),  # Llama 3 405B, 2407.21783 section 3.3.2
        (32, 3, [11, 11, 10]),
        (31, 2, [16, 15]),
        (30, 4, [7, 8, 8, 7]),
        (32, 4, [8, 8, 8, 8]),
    ],
)
def test_embedding_and_head_count_as_layers_where_layers_do_not_divide(layers: int, pp: int, counts: list[int]) -> None:
    assert place_layers(replace(SMALL, num_layers=layers), pp, placement="even") == counts


def test_no_layer_is_lost_and_every_layout_finds_its_own_row() -> None:
    for pp in (2, 3, 5, 7, 16, 32):
        for placement in ("even", "by_cost"):
            assert sum(place_layers(SMALL, pp, placement=placement)) == 16
    stages = stage_layers(SMALL, np.array([4.0, 1.0, 2.0]), placement="by_cost")
    assert stages.first.tolist() == [5, 16, 10]
    assert stages.middle.tolist() == [5, 16, 10]
    assert stages.last.tolist() == [1, 16, 6]
