"""Views whose rows a store keeps: computed when it is published, as a table of the view's name.

Pages look up a run or a file in them, and no condition on either reaches into their windows and joins: each page would
compute all of the rows. A renewed store computes those again whose tables have changed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from sweepscope.schemas.core import ddl
from sweepscope.schemas.registry import TABLES, VIEWS

_NOT_CODE = re.compile(r"--[^\n]*|'(?:[^']|'')*'")


def as_stored(views: Mapping[str, str]) -> dict[str, str]:
    """The statements by view, those of stored ones such that they create a table, in the order of its key."""
    return {
        name: as_table(name, text) if name in VIEWS and VIEWS[name].is_stored else text for name, text in views.items()
    }


def outdated(views: Mapping[str, str], changed: Collection[str]) -> list[str]:
    """Stored views that read any of the changed tables, themselves or through other views, in order of creation."""
    return [name for name in views if name in VIEWS and VIEWS[name].is_stored and tables_of(name, views) & set(changed)]


def as_table(name: str, text: str) -> str:
    """The statement of a view such that it creates a table, in the order of its key."""
    return f"CREATE OR REPLACE TABLE {name} AS {_rows(name, text)}"


def as_rows(name: str, text: str) -> str:
    """Statements that put the rows of a view in the place of those that its table has. Comments on it stay."""
    return f"DELETE FROM {name}; INSERT INTO {name} {_rows(name, text)}"


def _rows(name: str, text: str) -> str:
    _, _, select = text.partition(f"CREATE VIEW {name} AS")
    key = ", ".join(map(ddl.quote, VIEWS[name].primary_key))
    return f"FROM (\n{select.strip().removesuffix(';')}\n) ORDER BY {key}"


def tables_of(name: str, views: Mapping[str, str]) -> set[str]:
    """Tables that a view's rows come from; rather one too many, where a column has a table's name, than one too few."""
    return set().union(*(_words(view, views) & set(TABLES) for view in read_by([name], views)))


def read_by(names: Collection[str], views: Mapping[str, str]) -> list[str]:
    """Those views and all that they read, themselves or through other views, in order of creation."""
    found, waiting = set(names), list(names)
    while waiting:
        new = (_words(waiting.pop(), views) & set(VIEWS) & set(views)) - found
        found |= new
        waiting += new
    return [name for name in views if name in found]


def _words(name: str, views: Mapping[str, str]) -> set[str]:
    return set(re.findall(r"\w+", _NOT_CODE.sub("", views[name]))) - {name}
