"""The text by which a value is found in its lines: the words in front of it, its unit, more where those are not unique.

A piece is tried on the lines of the sample and taken only if it finds the right value in all of them.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sweepscope.pipeline.logs.declared.columns import STEP_COLUMNS, target
from sweepscope.pipeline.logs.declared.parse_template import parse
from sweepscope.pipeline.logs.declared.units import KINDS
from sweepscope.pipeline.logs.inference.fields import Field
from sweepscope.pipeline.logs.inference.series import Line, Series
from sweepscope.pipeline.text.word_boundaries import in_python

_MOST_TRIED = 400
_MOST_WAYS = 4
"""Pieces for one series, where its lines differ in what stands in front of it."""
_MOST_CONTEXT = 48
_LEAST_SHARE = 0.02
"""Of the lines of a series that one more piece has to find."""


@dataclass(frozen=True)
class Filled:
    """What a piece fills: `column` printed as `word`, and `total` from the number behind a slash."""

    column: str
    word: str = ""
    total: str = ""


def pieces(series: Series, lines: Sequence[Line], filled: Filled) -> list[str]:
    """Pieces that together find the values of a series in its lines, and no others; [] where there are none.

    Args:
        series: the values; `rows` are indices of `lines`.
        lines: the sample. In those without a value of the series, nothing may be found.
        filled: what they fill.
    """
    wanted = _spread(series)
    found: list[str] = []
    missing = wanted
    while missing and len(found) < _MOST_WAYS:
        best, hits = _best(_ways(missing, lines, filled), wanted, missing, lines)
        if hits <= 0 or (found and hits <= _LEAST_SHARE * len(wanted)):
            break
        found.append(best)
        pattern = compiled(best)
        missing = {row: one for row, one in missing.items() if not _finds(pattern, lines[row], one)}
    return found


def _spread(series: Series) -> dict[int, Field]:
    """The values to try, by row: all of a few, some from everywhere of many; those that are printed as missing, too."""
    found = series.by_row
    if len(found) <= _MOST_TRIED:
        return dict(found)
    step = len(found) / _MOST_TRIED
    rows = list(found)
    return {rows[int(at * step)]: found[rows[int(at * step)]] for at in range(_MOST_TRIED)}


def _ways(missing: Mapping[int, Field], lines: Sequence[Line], filled: Filled) -> list[str]:
    """Pieces that may find the values, from the shortest context on, for the commonest kind of context."""
    heads = Tally(_squeezed(lines[row].text[one.head : one.begin]) for row, one in missing.items())
    head = heads.most_common(1)[0][0]
    row, one = next(
        (row, one) for row, one in missing.items() if _squeezed(lines[row].text[one.head : one.begin]) == head
    )
    return list(dict.fromkeys(_of_value(lines[row], one, filled)))


def _of_value(line: Line, one: Field, filled: Filled) -> Iterator[str]:
    text = line.text
    at = next(at for at, each in enumerate(line.fields) if each.begin == one.begin)
    before = line.fields[at - 1] if at else None
    following = line.fields[at + 1] if at + 1 < len(line.fields) else None
    value, stop = _value(text, one, following, filled)
    near = _squeezed(text[one.head : one.begin])
    begin = before.stop if before else line.begin
    far = _squeezed(text[max(begin, one.begin - _MOST_CONTEXT) : one.begin])
    after = line.fields[at + (2 if filled.total else 1)] if at + (2 if filled.total else 1) < len(line.fields) else None
    behind = _squeezed(text[stop : after.begin if after else len(text)][:_MOST_CONTEXT].rstrip(), keep=True)
    behind = _whole_words(behind)
    # A bare bracket or colon is no text to find a line by, if anything better is there.
    if re.search(r"[^\W\d_]", near) or re.search(r"[^\W\d_]", value.split("}", 1)[-1]):
        yield near + value
    elif unit := _squeezed(text[one.end : one.stop], keep=True) if not filled.total else "":
        yield near + value.partition("}")[0] + "}" + unit  # of `12.3 310.4ms` the unit alone marks the second
    if behind:
        yield near + value + behind
    yield far + value
    if behind:
        yield far + value + behind
    if before:
        led = _squeezed(text[before.head : before.begin])
        yield led + "{_}" + _squeezed(text[before.end : one.begin], keep=True) + value
        yield led + "{_}" + _squeezed(text[before.end : one.begin], keep=True) + value + behind
    yield near + value


def _whole_words(behind: str) -> str:
    """What stands behind a value as far as it is fixed text: it ends with a word or a sign, not within one."""
    found = re.match(r"(?:[^\w]*[A-Za-z_]+[^\w\s]*|[^\w\s]+)", behind)
    return found[0] if found else ""


def _value(text: str, one: Field, following: Field | None, filled: Filled) -> tuple[str, int]:
    """The field of a piece with what is printed of its unit, and where that ends in the line."""
    name = f"{filled.column}:{filled.word}" if filled.word else filled.column
    value, stop = f"{{{name}}}" + _unit(text[one.end : one.stop], filled.word), one.stop
    if filled.total and following is not None and following.role == "of":
        slash = _squeezed(text[one.stop : following.begin], keep=True)
        return f"{value}{slash}{{{filled.total}}}", following.stop
    return value, stop


def _unit(printed: str, word: str) -> str:
    """What is printed behind a number, without what the field's own word already reads."""
    kind = KINDS.get(word)
    if kind is None:
        return _squeezed(printed, keep=True)
    if word == "size":
        return ""
    own = re.match(kind.unit, printed) if kind.unit else None
    return _squeezed(printed[own.end() :] if own else printed, keep=True)


def _squeezed(text: str, *, keep: bool = False) -> str:
    """Text of a line as a piece writes it: blanks are one, braces two; the first are left out, unless kept."""
    plain = re.sub(r"\s+", " ", text)
    plain = plain if keep else plain.lstrip()
    plain = re.sub(r"(?<=[^\w\s]) $", "", plain)  # the value passes over padding
    return plain.replace("{", "{{").replace("}", "}}")


@lru_cache(maxsize=4_096)
def compiled(piece: str) -> re.Pattern[str] | None:
    """The expression of a piece; None for one that cannot be a piece."""
    try:
        regex = parse(piece, lambda name, word: None if name == "_" else target(name, word, STEP_COLUMNS)).regex
        return re.compile(in_python(regex))
    except (ValueError, re.error):
        return None


def _best(
    ways: Sequence[str], wanted: Mapping[int, Field], missing: Mapping[int, Field], lines: Sequence[Line]
) -> tuple[str, int]:
    """The piece that finds most of the missing values, the shortest of several, and how many; "" of none."""
    best, most = "", 0
    for way in sorted(ways, key=len):
        hits = _hits(way, wanted, missing, lines)
        if hits > most:
            best, most = way, hits
        if most == len(missing):
            break  # a longer one finds no more
    return best, most


def _hits(piece: str, wanted: Mapping[int, Field], missing: Mapping[int, Field], lines: Sequence[Line]) -> int:
    """How many of the missing values a piece finds; negative where it finds a wrong one."""
    pattern = compiled(piece)
    if pattern is None:
        return -1
    right = 0
    for row, one in wanted.items():
        found = _finds(pattern, lines[row], one)
        if found is None:
            continue
        if not found:
            return -1
        right += row in missing
    return right


def _finds(pattern: re.Pattern[str] | None, line: Line, one: Field) -> bool | None:
    """Whether a pattern finds the value in its line; None where it finds nothing."""
    found = pattern.search(line.text) if pattern else None
    if not found:
        return None
    begin = found.start(next(iter(found.re.groupindex)))
    return one.number is None if begin < 0 else begin == one.begin
