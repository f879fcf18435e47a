"""Lines with which a script announces the launches of one log, each with its settings: `=== tp=2 mbs=4 ===`.

A loop over layouts writes one log. Such a line comes again with other settings, and what follows is a fresh start:
steps that begin with the first one again, a failure, or a summary. That distinguishes it from a configuration that is
printed once, from the headers of epochs and evaluations, between which the steps go on, from stages of one training,
whose loss goes on, and from what a requeued job prints again, whose settings are the same.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from sweepscope.pipeline.logs.inference.stated import Stated, stated
from sweepscope.pipeline.logs.sidecars.folder_name import TOKEN_WORDS, read_folder_name
from sweepscope.pipeline.logs.synonyms import EVALUATION, LOSS_VALUES, SETTING_WORDS

VARIED = frozenset(
    (
        *("dp", "dp_shard", "dp_replicate", "tp", "pp", "cp", "ep", "vpp", "mbs", "gbs", "batch", "gas", "gbs_tokens"),
        *("seq_len", "num_gpus", "num_nodes", "zero_stage", "recompute", "precision", "model", "num_layers"),
        "hidden_size",
    )
)
"""Settings over which sweeps go."""

_SCRIPT = re.compile(r"\b(?:torchrun|python[\d.]*|accelerate|deepspeed|srun|mpirun|bash|sh)\b.*?([\w.-]+\.(?:py|sh))\b")
_MARKS = re.compile(r"^\s*([^\w\s]*)\s*\[?([A-Za-z_]*)")
_BETWEEN = re.compile(r"[\s,;:()|\[\]]+")
_LONGEST = 4_000
_SAME_LOSS = 0.05
_LEAST_COLUMNS = 2
_LEAST_BEGUN = 2
_UNSURE = 2
"""How sure a setting is that the name of an experiment gives: every statement counts more."""


@dataclass(frozen=True)
class Printed:
    """What a log holds besides its headers, by the numbers of its lines.

    Attributes:
        steps: number and loss of the step by line, in order.
        results: lines of failures, and of figures such as a benchmark's summary has.
    """

    steps: Mapping[int, tuple[int, float | None]]
    results: Collection[int]


@dataclass(frozen=True)
class _Part:
    """What lies between two headers: its settings, whether it failed or has figures, its steps in order."""

    settings: frozenset[tuple[str, str]]
    has_results: bool
    steps: Sequence[tuple[int, float | None]]


def headers(rows: Sequence[tuple[int, str]], printed: Printed) -> list[int]:
    """Numbers of the lines that begin a launch of their own: at least two with different settings, or none.

    Args:
        rows: `line_no` and `text` of all lines of a log, in order.
        printed: what else it holds.
    """
    candidates = _candidates(rows, printed)
    announced = {line_no: values for line_no, text in candidates if (values := _announced(line_no, text))}
    texts = {line_no: text for line_no, text in rows if line_no in announced}
    others = [line_no for line_no, text in rows if line_no not in announced and text.strip()]
    found: list[list[int]] = []
    for group in _alike(announced, texts):
        begins = _apart(group, others)
        if len(begins) > 1 and _begin_launches(begins, announced, printed):
            found.append(begins)
    return min(found, key=lambda begins: (-len(begins), begins[0]), default=[])


def stated_in_header(line_no: int, text: str) -> list[Stated]:
    """What a header states: also behind words that a name could go with, and in the name of an experiment.

    >>> [(one.column, one.value) for one in stated_in_header(1, "Starting run 3/12: zero2_mbs4 tp=2")]
    [('tp', '2'), ('zero_stage', '2'), ('mbs', '4')]
    """
    found = list(stated([(line_no, text)]))
    found += _further(found, stated((line_no, piece) for piece in text.split() if "=" in piece))
    named = [
        Stated(column, value, _UNSURE, "", "name", "", value, line_no, text, 0, 0, len(text))
        for column, value in _named(text).items()
    ]
    return found + _further(found, named)


def _named(text: str) -> dict[str, str]:
    """Settings in the name of an experiment, as in names of folders."""
    found = read_folder_name(_BETWEEN.sub("_", text.lower()))
    return {column: value for column, value in found.items() if ":" not in column}


def _further(known: Sequence[Stated], found: Iterable[Stated]) -> list[Stated]:
    """Those of the `found` whose columns are not yet known."""
    columns = {one.column for one in known}
    return [one for one in found if one.column not in columns]


def _candidates(rows: Sequence[tuple[int, str]], printed: Printed) -> Iterator[tuple[int, str]]:
    """Lines with a word of a setting or of a layout, that are neither steps nor results nor print a loss."""
    text = pl.col("text")
    has_word = text.str.contains(SETTING_WORDS) | text.str.contains(TOKEN_WORDS)
    is_other = (text.str.len_chars() <= _LONGEST) & ~text.str.contains(LOSS_VALUES)
    lines = pl.DataFrame(rows, schema={"line_no": pl.Int64, "text": pl.String}, orient="row")
    for line_no, line in lines.filter(has_word & is_other).iter_rows():
        if line_no not in printed.steps and line_no not in printed.results:
            yield line_no, line


def _announced(line_no: int, text: str) -> dict[str, str]:
    """Settings that a line states, if it is one that may announce a launch."""
    if EVALUATION.search(text.lower()):
        return {}
    values = {one.column: one.value for one in stated_in_header(line_no, text)}
    return values if values.keys() & VARIED else {}


def _alike(announced: Mapping[int, Mapping[str, str]], texts: Mapping[int, str]) -> Iterable[list[int]]:
    """Lines of one form, in order: the same script, the same first word behind the same marks, or the same settings."""
    groups: dict[object, list[int]] = {}
    for line_no, values in announced.items():
        script = _SCRIPT.search(texts[line_no])
        marks = _MARKS.match(texts[line_no])
        groups.setdefault(("script", script[1]) if script else ("marks", *marks.groups()) if marks else "", []).append(
            line_no
        )
        if len(values) >= _LEAST_COLUMNS and not script:
            groups.setdefault(("settings", *sorted(values)), []).append(line_no)
    return groups.values()


def _apart(group: Sequence[int], others: Sequence[int]) -> list[int]:
    """Those of a group with something else between: lines one below the other are one block, or a list of plans."""
    kept: list[int] = []
    for number, line_no in enumerate(group):
        until = group[number + 1] if number + 1 < len(group) else None
        has_more = bisect_left(others, line_no) < (len(others) if until is None else bisect_left(others, until))
        before = group[number - 1] if number else None
        is_first = before is None or bisect_left(others, before) < bisect_left(others, line_no)
        if (is_first and has_more) or (not kept and has_more):
            kept.append(line_no)
    return kept


def _begin_launches(begins: Sequence[int], announced: Mapping[int, Mapping[str, str]], printed: Printed) -> bool:
    """Whether each line begins a launch: settings differ, and what follows is a fresh start."""
    ends = [*begins[1:], sys.maxsize]
    parts = [_part(begin, end, announced, printed) for begin, end in zip(begins, ends, strict=True)]
    if not _vary(announced[line_no] for line_no in begins):
        return False
    begun = sum(part.has_results or bool(part.steps) for part in parts)
    # One of them alone: two lines of the block of settings that it printed before its steps.
    if begun < _LEAST_BEGUN or 2 * begun < len(parts):
        return False
    return _start_anew(parts) and not _is_one_training([part.steps for part in parts if part.steps])


def _vary(settings: Iterable[Mapping[str, str]]) -> bool:
    """Whether two launches state another value of the same setting: a dump of arguments states each of them once."""
    values: dict[str, set[str]] = {}
    for column, value in (one for each in settings for one in each.items() if one[0] in VARIED):
        values.setdefault(column, set()).add(value)
    return any(len(found) > 1 for found in values.values())


def _part(begin: int, end: int, announced: Mapping[int, Mapping[str, str]], printed: Printed) -> _Part:
    lines = _between(list(printed.steps), begin, end)
    setup = _between(list(announced), begin, lines[0] if lines else end)
    settings = {one for line_no in setup for one in announced[line_no].items() if one[0] in VARIED}
    has_results = any(begin <= line < end for line in printed.results)
    return _Part(frozenset(settings), has_results, [printed.steps[line] for line in lines])


def _between(lines: Sequence[int], begin: int, end: int) -> Sequence[int]:
    return lines[bisect_left(lines, begin) : bisect_left(lines, end)]


def _start_anew(parts: Sequence[_Part]) -> bool:
    """Whether each part with steps begins with those of the first, or goes on with the settings of the one before."""
    stepped = [part for part in parts if part.steps]
    for before, part in pairwise(stepped):
        is_anew = part.steps[0][0] <= max(stepped[0].steps[0][0], 1) or part.steps[0][0] < before.steps[-1][0]
        if not is_anew and part.settings != before.settings:
            return False
    return True


def _is_one_training(parts: Sequence[Sequence[tuple[int, float | None]]]) -> bool:
    """Whether the loss of each part goes on where that of the one before ended: stages of one training."""
    losses = [[loss for _, loss in steps if loss is not None] for steps in parts]
    losses = [values for values in losses if values]
    if len(losses) < 2 or abs(losses[0][0] - losses[0][-1]) <= _SAME_LOSS * abs(losses[0][0]):
        return False
    return all(abs(values[0] - before[-1]) < abs(values[0] - losses[0][0]) / 2 for before, values in pairwise(losses))
