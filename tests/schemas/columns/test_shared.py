"""The list of every column."""

from __future__ import annotations

from sweepscope.schemas.columns import shared


def test_a_name_has_one_meaning() -> None:
    names = [column.name for group in shared._GROUPS for column in group]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
