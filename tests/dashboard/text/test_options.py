"""What a selector says of the options that it leaves out."""

from __future__ import annotations

from sweepscope.dashboard.text.options import left_out


def test_options_that_a_selector_leaves_out_are_counted_with_the_way_to_them() -> None:
    words = {"noun": "model", "most": "runs", "parameter": "model"}
    assert left_out(["a", "b", "Custom shape"], ["a", "b", "c"], **words) == (
        "Listed are 2 of 3 models, those with the most runs first. An address with model=NAME opens any of them."
    )
    assert left_out(["a", "Custom shape"], ["a"], **words) is None
