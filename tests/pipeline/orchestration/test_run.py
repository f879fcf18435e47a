"""What the run of a graph hands back when it failed."""

from __future__ import annotations

from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.orchestration.run import _cause


def test_the_error_below_is_found_and_none_is_none() -> None:
    below = SweepscopeError("the disk is full")
    middle = RuntimeError()
    middle.__cause__ = below
    outer = ValueError()
    outer.__context__ = middle
    assert _cause(outer) is below
    assert _cause(ValueError()) is None


def test_errors_that_name_each_other_come_to_an_end() -> None:
    one, other = RuntimeError("one"), RuntimeError("other")
    one.__cause__, other.__context__ = other, one
    assert _cause(one) is None
