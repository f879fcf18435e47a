"""A list computed on the grid of its choices has the figures that it has on its own."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.factored_grid import AXES, LEAST_LAYOUTS, MOST_CELLS, distinct, regrid
from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.physics.memory import Memory
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.step_time import StepTime
from sweepscope.pipeline.reference.models import find_model, shape_of
from tests.pipeline.estimate.search.test_search import DEFAULT, H100, request
from tests.properties import draws


def shuffled(count: int, seed: int = 0) -> Layouts:
    """Layouts of a small question in any order, some of them several times."""
    rng = np.random.default_rng(seed)

    def one_of(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return rng.choice(np.array(values), count)

    tp, pp = one_of(1, 2, 8), one_of(1, 2, 4)
    mbs, zero = one_of(1, 2, 4), one_of(0, 1, 2, 3)
    return Layouts.of(
        dp=64 / tp / pp,
        tp=tp,
        pp=pp,
        mbs=mbs,
        gas=256 / mbs,
        zero_stage=zero,
        recompute=one_of(0, 2),
        sequence_parallel=np.where(tp > 1, 1.0, 0.0),
        dp_replicate=np.where(zero > 0, one_of(1, 2), 1.0),
        schedule=one_of(1, 3),
    )


@pytest.mark.parametrize("model", ["Llama 2 7B", "Mixtral 8x7B"])
def test_every_figure_and_part_is_that_of_the_layout_alone(model: str) -> None:
    asked = Question(shape_of(find_model(model) or {}), H100, DEFAULT, 4096)
    at = shuffled(4 * LEAST_LAYOUTS)
    assert regrid(at) is not None
    whole = estimate(asked, at)
    for place in (0, 17, 4 * LEAST_LAYOUTS - 1):
        alone = estimate(asked, at[np.array([place])])
        for name in ("mem_bytes", "step_time_s", "tokens_per_s_per_gpu", "mfu", "fits"):
            assert getattr(whole, name)[place] == pytest.approx(getattr(alone, name)[0], rel=1e-14)
        for part in fields(StepTime):
            own = np.ravel(getattr(alone.time, part.name))[0]
            assert getattr(whole.time, part.name)[place] == pytest.approx(own, rel=1e-14)
        for part in fields(Memory):
            own = np.ravel(getattr(alone.memory, part.name))[0]
            assert getattr(whole.memory, part.name)[place] == pytest.approx(own, rel=1e-14)


def test_short_lists_and_lists_of_strangers_are_left_alone() -> None:
    assert regrid(shuffled(LEAST_LAYOUTS - 1)) is None
    strangers = np.arange(1.0, 2_001.0)
    assert regrid(Layouts.of(dp=strangers, gas=strangers, recompute=strangers % 3, zero_stage=strangers % 4)) is None


def test_every_column_of_a_layout_has_its_axis() -> None:
    assert sorted(name for axis in AXES for name in axis) == sorted(entry.name for entry in fields(Layouts))


def test_a_grid_stays_a_grid() -> None:
    asked = request()
    at = Layouts.of(tp=np.array([[1.0], [2.0]]), mbs=np.array([[1.0, 4.0]]))
    assert regrid(at) is None
    assert estimate(asked.asked, at).step_time_s.shape == (2, 2)


COLUMN = st.lists(st.sampled_from([1.0, 2.0, 3.0, 512.0, 3e9]), min_size=40, max_size=40)


@settings(max_examples=draws(100), deadline=None)
@given(columns=st.lists(COLUMN, min_size=1, max_size=5))
def test_rows_share_a_code_where_they_are_equal_and_nowhere_else(columns: list[list[float]]) -> None:
    arrays = [np.array(column) for column in columns]
    first, codes = distinct(arrays)
    codes = np.broadcast_to(codes, (40,))
    rows = list(zip(*columns, strict=True))
    assert first.size == len(set(rows)) <= 40 * MOST_CELLS
    assert all(rows[first[code]] == row for row, code in zip(rows, codes, strict=True))
