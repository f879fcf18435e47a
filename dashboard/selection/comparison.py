"""Which runs a comparison is of, as the address names them: `runs=ID,ID,...`, or `group=ID,ID` once per group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST_RUNS = 20
"""More columns than these cannot be read side by side."""

_LETTERS = "ABCDEFGHIJKLMNOPQRST"


@dataclass(frozen=True)
class Asked:
    """Run ids by column of the comparison, and how many further ones the address names."""

    columns: tuple[tuple[str, ...], ...] = ()
    left_out: int = 0

    @property
    def run_ids(self) -> list[str]:
        """Every run of it once, in order."""
        return list(dict.fromkeys(run_id for column in self.columns for run_id in column))


def parse_runs(query: Mapping[str, Sequence[str]]) -> Asked:
    """The columns that an address asks for: one per run, or one per group where it names two groups or more.

    A run that is named twice is one column, and belongs to the first of its groups.

    >>> parse_runs({"runs": ["a,b", "a"]}).columns
    (('a',), ('b',))
    >>> parse_runs({"group": ["a,b", "b,c"]}).columns
    (('a', 'b'), ('c',))
    >>> parse_runs({"runs": [",".join(map(str, range(25)))]}).left_out
    5
    """
    groups = [_ids(text) for text in query.get("group", ())]
    named = groups if len(groups) > 1 else [(run_id,) for text in query.get("runs", ()) for run_id in _ids(text)]
    if len(groups) == 1:
        named += [(run_id,) for run_id in groups[0]]
    seen: set[str] = set()
    columns, left_out = [], 0
    for column in named:
        new = [run_id for run_id in dict.fromkeys(column) if run_id not in seen]
        kept = new[: MOST_RUNS - len(seen)]
        left_out += len(new) - len(kept)
        seen.update(kept)
        if kept:
            columns.append(tuple(kept))
    return Asked(tuple(columns), left_out)


def _ids(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def letter(position: int) -> str:
    """Name of a column: A for the first.

    >>> letter(0), letter(19)
    ('A', 'T')
    """
    return _LETTERS[position]
