"""Runs side by side: the columns of a comparison, and each setting with its value in every column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import polars as pl

from sweepscope.dashboard.format.columns import column_label
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.selection.comparison import letter
from sweepscope.dashboard.view_models.configuration import GROUPS, setting_label, setting_text
from sweepscope.schemas.registry import TABLES

NOT_STATED = "not stated"


@dataclass(frozen=True)
class Subject:
    """One column of a comparison: a run, or several runs that count as one (`is_group`). `runs` are rows of
    `queries.compare.runs`.
    """

    letter: str
    runs: tuple[Row, ...]

    @property
    def is_group(self) -> bool:
        """Whether it stands for several runs."""
        return len(self.runs) > 1

    @property
    def run_ids(self) -> list[str]:
        """Ids of its runs."""
        return [row["run_id"] for row in self.runs]

    def middle(self, name: str) -> float | None:
        """The value of a run, or the median over the runs of a group that have one."""
        known = [row[name] for row in self.runs if row[name] is not None]
        return median(known) if known else None

    def shared(self, name: str) -> Any:
        """The value that all of its runs have; None where they differ or none has one."""
        found = {row[name] for row in self.runs}
        return found.pop() if len(found) == 1 else None

    def spread(self, name: str) -> float | None:
        """(largest - smallest) / median over the runs of a group; None of fewer than two values."""
        known = [row[name] for row in self.runs if row[name] is not None]
        return (max(known) - min(known)) / median(known) if len(known) > 1 and median(known) else None


def subjects(columns: Iterable[Sequence[str]], runs: pl.DataFrame) -> list[Subject]:
    """The columns of a comparison, lettered; runs that the store does not have are left out."""
    rows = {row["run_id"]: row for row in runs.iter_rows(named=True)}
    kept = [tuple(rows[run_id] for run_id in column if run_id in rows) for column in columns]
    return [Subject(letter(position), found) for position, found in enumerate(filter(None, kept))]


@dataclass(frozen=True)
class Line:
    """One row of a comparison: its label, a text per column (None = not stated), and whether the columns differ."""

    name: str
    label: str
    texts: tuple[str | None, ...]

    @property
    def differs(self) -> bool:
        """Whether two columns have different texts; one that states nothing differs from one that does."""
        return len(set(self.texts)) > 1

    @property
    def is_stated_by_several(self) -> bool:
        """Whether at least two columns have a value."""
        return sum(text is not None for text in self.texts) > 1


def configuration_lines(columns: Sequence[Subject]) -> dict[str, list[Line]]:
    """Lines by group of settings (layout, model, place, software); those that no column states are left out."""
    found: dict[str, list[Line]] = {}
    for group, names in GROUPS.items():
        lines = [Line(name, setting_label(name), _texts(columns, name)) for name in _listed(group, names)]
        stated = [line for line in lines if any(text is not None for text in line.texts)]
        # a dense model activates all it has: once is enough
        params = next((line.texts for line in stated if line.name == "params"), None)
        found[group] = [line for line in stated if line.name != "active_params" or line.texts != params]
    return {group: lines for group, lines in found.items() if lines}


_BEFORE = {"Model": ("model",)}
_LEFT_OUT = ("job_id",)  # another for each run, and no setting
_AFTER = {"Place": ("hosts",)}


def _listed(group: str, names: Sequence[str]) -> list[str]:
    return [name for name in (*_BEFORE.get(group, ()), *names, *_AFTER.get(group, ())) if name not in _LEFT_OUT]


def _texts(columns: Sequence[Subject], name: str) -> tuple[str | None, ...]:
    return tuple(_joined(setting_text(name, row[name]) for row in one.runs if row[name] is not None) for one in columns)


def _joined(texts: Iterable[str]) -> str | None:
    """The different texts of a group, in their order; None of none."""
    return ", ".join(dict.fromkeys(texts)) or None


def raw_lines(columns: Sequence[Subject], settings: pl.DataFrame) -> list[Line]:
    """Lines of settings that fill no column of `runs`, named as the framework spells them.

    `settings` are rows of `queries.compare.settings`.
    """
    known = {name for names in GROUPS.values() for name in names} | {"layout", "model", *_LEFT_OUT}
    values = {(row["name"], row["run_id"]): row["value"] for row in settings.iter_rows(named=True)}
    raw = dict.fromkeys(name for name in settings["name"] if name not in known)

    def text(name: str, one: Subject) -> str | None:
        return _joined(str(values[name, run_id]) for run_id in one.run_ids if values.get((name, run_id)) is not None)

    own = TABLES["runs"].column_names  # steps_planned, say: what no framework spells
    return [
        Line(name, column_label(name) if name in own else name, tuple(text(name, one) for one in columns))
        for name in raw
    ]


@dataclass(frozen=True)
class Folded:
    """Lines worth showing, and how many are folded away: alike in all columns, or stated by one column alone."""

    shown: list[Line]
    equal: list[Line]
    alone: list[Line]


def folded(lines: Iterable[Line], *, is_raw: bool = False) -> Folded:
    """The lines in which columns differ.

    Of raw settings those that one column alone states are folded: frameworks have hundreds of their own.
    """
    every = list(lines)
    differing = [line for line in every if line.differs]
    alone = [line for line in differing if is_raw and not line.is_stated_by_several]
    return Folded(
        shown=[line for line in differing if line not in alone],
        equal=[line for line in every if not line.differs],
        alone=alone,
    )


def table(columns: Sequence[Subject], lines: Iterable[Line], heading: Callable[[Subject], str]) -> pl.DataFrame:
    """The lines as a frame for a table or a download: a column `setting` and one per column of the comparison."""
    kept = list(lines)
    return pl.DataFrame(
        {
            "setting": [line.label for line in kept],
            **{heading(one): [line.texts[place] for line in kept] for place, one in enumerate(columns)},
        },
        schema={"setting": pl.String, **{heading(one): pl.String for one in columns}},
    )


def groupings(columns: Sequence[Subject]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Settings by which runs of single columns fall into two to six groups, one of them with several runs, and the
    ids of those groups.
    """
    runs = [row for one in columns for row in one.runs]
    if len(runs) < 3 or any(one.is_group for one in columns):
        return {}
    found = {}
    for name in _GROUPED_BY:
        by_value: dict[Any, list[str]] = {}
        for row in runs:
            by_value.setdefault(row[name], []).append(row["run_id"])
        if 2 <= len(by_value) <= _MOST_GROUPS and len(by_value) < len(runs):
            found[name] = tuple(tuple(run_ids) for run_ids in by_value.values())
    return found


_GROUPED_BY = (
    *("framework", "framework_version", "torch_version", "nccl_version", "cluster", "accelerator", "model", "layout"),
    *("num_gpus", "tp", "pp", "zero_stage", "mbs", "recompute", "status", "sweep"),
)
_MOST_GROUPS = 6
