"""Rules for the lines of steps: which lines they are, the pieces of each, and the words that keep others out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sweepscope.pipeline.logs.declared.parse_template import parse
from sweepscope.pipeline.logs.declared.toml_reader import MAX_LITERALS
from sweepscope.pipeline.logs.inference.columns import Guess
from sweepscope.pipeline.logs.inference.counter import Counter
from sweepscope.pipeline.logs.inference.pieces import Filled, compiled, pieces
from sweepscope.pipeline.logs.inference.series import Key, Line, Series
from sweepscope.pipeline.logs.synonyms import EVALUATION

_WORD = re.compile(r"[A-Za-z_][A-Za-z_./-]{2,}")
_CHECKPOINT = re.compile(r"(?i)\b(?:sav(?:e|ed|ing)|checkpoint(?:ed|ing)?|ckpt|wrote|writing)\b")
"""In front of the number of a step: the line is that of a checkpoint and repeats the step's loss."""
_SOME = 0.2
"""Of the lines, that are not those of a checkpoint where others are."""
_TOTAL = re.compile(r"/ ?\d+")
"""What a counter counts up to, which keeps out lines that differ in nothing else."""
_MOST_WORDS = 6
_MOST_PASSED = 3
_PLAIN, _WITH_SUFFIX = "loss", "tokens_per_s:human"
_STANDS_IN = {_PLAIN: Filled("loss"), _WITH_SUFFIX: Filled("tokens_per_s", "human")}
"""What a piece is tried with for a number that fills nothing."""


@dataclass(frozen=True)
class StepRule:
    """A [[step]] of a dialect file.

    `guesses` are what its pieces stand for, in their order, the counter's first; `below` those of lines below, by key.
    `counts` is what the counter counts, `epoch_line` the line above the steps of an epoch, or below them.
    `passed` are pieces for values that are in no column, with the reason; `doubted` those of them that were guessed.
    """

    parts: tuple[str, ...]
    guesses: tuple[Guess, ...]
    contains: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    first_epoch: int = 0
    counts: str = "steps"
    epoch_line: str = ""
    epoch_line_is: str = "above"
    below: Mapping[str, Guess] = field(default_factory=dict)
    passed: Mapping[str, str] = field(default_factory=dict)
    doubted: Mapping[Key, str] = field(default_factory=dict)


def rows_of_steps(
    found: Mapping[Key, Series], lines: Sequence[Line], counter: Counter, beside: Iterable[Key]
) -> set[int]:
    """Rows with the counter and one of the values beside it, none of them of an evaluation or a checkpoint."""
    mine = {row for row, one in found[counter.key].by_row.items() if one.split != "eval"}
    has_value = {
        row
        for key in beside
        for row, one in zip(found[key].rows, found[key].fields, strict=True)
        if one.split != "eval"
    }
    rows = mine & has_value
    counted = found[counter.key].by_row
    plain = {row for row in rows if not _CHECKPOINT.search(lines[row].text[: counted[row].begin])}
    return plain if len(plain) >= _SOME * len(rows) else rows


def step_rule(
    found: Mapping[Key, Series], lines: Sequence[Line], counter: Counter, chosen: Sequence[Guess], rows: set[int]
) -> StepRule | None:
    """The rule that reads `rows`; None where the counter cannot be found in them."""
    if counter.is_lines:
        chosen = sorted(chosen, key=lambda guess: guess.column != "loss")
        return _with_values(StepRule((), (), counts=counter.counts), found, lines, chosen, rows, taken_by=counter.taken)
    counted = _counter_guess(counter)
    has_total = counter.has_total and _has_total(found, counter.key, rows)
    is_of_epoch = bool(counter.epoch or counter.epoch_line)
    total = ("epoch_steps" if is_of_epoch else "steps_planned") if has_total else ""
    column = "epoch_step" if is_of_epoch else "step"
    word = "human" if found[counter.key].within(rows).has_shortened else ""
    first = pieces(found[counter.key].within(rows), lines, Filled(column, word, total=total))
    if not first:
        return None
    parts, taken = [first[0]], [counted]
    if counter.epoch:
        total = "epochs" if _has_total(found, counter.epoch, rows) else ""
        of_epoch = pieces(found[counter.epoch].within(rows), lines, Filled("epoch", total=total))
        if not of_epoch:
            return None
        parts += of_epoch[:1]
        taken.append(replace(counted, column="epoch", key=counter.epoch))
    rule = StepRule(
        tuple(parts),
        tuple(taken),
        first_epoch=counter.first_epoch if is_of_epoch else 0,
        counts=counter.counts,
        epoch_line=counter.epoch_line,
        epoch_line_is=counter.epoch_line_is,
    )
    return _with_values(rule, found, lines, chosen, rows, taken_by=counter.taken)


def _with_values(
    begun: StepRule,
    found: Mapping[Key, Series],
    lines: Sequence[Line],
    chosen: Sequence[Guess],
    rows: set[int],
    *,
    taken_by: Collection[Key | None],
) -> StepRule | None:
    """The rule, which has the pieces of the counter, `taken_by` of whose keys are no values, with those of the values.

    None where it finds nothing.
    """
    parts, taken = list(begun.parts), list(begun.guesses)
    for guess in chosen:
        if guess.word is None or not guess.is_read:
            continue
        for piece in pieces(found[guess.key].within(rows), lines, Filled(guess.column, guess.word)):
            parts.append(piece)
            taken.append(guess)
    if not parts:
        return None
    contains = _in_all(lines, rows, found, chosen)
    rule = replace(begun, parts=tuple(dict.fromkeys(parts)), guesses=tuple(taken), contains=contains)
    rule = replace(rule, without=_in_others(rule, lines, rows))
    doubts = {guess.key: guess for guess in chosen if guess not in rule.guesses}
    others = {key: series for key, series in found.items() if key not in taken_by}
    return _with_passed(rule, others, lines, doubts, rows)


def _with_passed(
    rule: StepRule,
    found: Mapping[Key, Series],
    lines: Sequence[Line],
    doubts: Mapping[Key, Guess],
    rows: set[int],
) -> StepRule:
    """The rule with pieces for the other numbers that most lines of steps have: by them the lines are known again."""
    taken = {guess.key for guess in rule.guesses}
    passed: dict[str, str] = {}
    doubted: dict[Key, str] = {}
    for key, series in sorted(found.items(), key=lambda one: one[0] not in doubts):
        own = series.within(rows)
        is_rare = len(set(own.rows)) * 2 < len(rows)
        if key in taken or key[1] == "of" or (is_rare and key not in doubts):
            continue
        if len(rule.parts) + len(passed) == MAX_LITERALS:
            break
        has_suffix = any(re.search("[kKMBGT]$", one.text) for one in own.fields)
        filled = _WITH_SUFFIX if has_suffix else _PLAIN
        ways = [piece.replace(f"{{{filled}}}", "{_}") for piece in pieces(own, lines, _STANDS_IN[filled])[:1]]
        for piece in ways:
            if piece not in rule.parts and piece not in passed and _is_piece(piece):
                guess = doubts.get(key)
                passed[piece] = f"perhaps {guess.column}, {guess.reason}" if guess else "not known, and passed over"
                doubted |= {key: piece} if guess else {}
    return replace(rule, passed=passed, doubted=doubted)


def _is_piece(text: str) -> bool:
    try:
        parse(text, lambda _name, _word: None)
    except ValueError:
        return False
    return text.count("{_}") <= _MOST_PASSED


def _counter_guess(counter: Counter) -> Guess:
    confidence = ("high", "medium", "low")[counter.sure]
    return Guess("step", counter.key, "", confidence, f"named {counter.key[0]!r}, rises with the lines", counter.sure)


def _has_total(found: Mapping[Key, Series], key: Key, rows: set[int]) -> bool:
    total = found.get((key[0], "of", key[2]))
    return total is not None and len(rows & set(total.rows)) > 0.9 * len(rows)


def _in_all(
    lines: Sequence[Line], rows: set[int], found: Mapping[Key, Series], chosen: Sequence[Guess]
) -> tuple[str, ...]:
    """A word in front of a value that every line of a step holds, the rarest kind first: that of its loss."""
    for guess in sorted(chosen, key=lambda guess: guess.column != "loss"):
        words: dict[str, int] = {}
        series = found[guess.key]
        seen = 0
        for row, one in series.by_row.items():
            if row not in rows:
                continue
            seen += 1
            line = lines[row]
            near = line.text[one.head : one.begin] + " " + line.text[one.end : one.stop]
            for word in set(_WORD.findall(near)):
                words[word] = words.get(word, 0) + 1
        full = [word for word, count in words.items() if count == seen == len(rows)]
        if full:
            return (max(full, key=lambda word: (word.lower() in lines[min(rows)].text.lower(), len(word))),)
    return ()


def _in_others(rule: StepRule, lines: Sequence[Line], rows: set[int]) -> tuple[str, ...]:
    """Words that keep out the other lines that the rule would find."""
    pattern = compiled(rule.parts[0])
    if pattern is None:
        return ()
    others = [
        line.text
        for row, line in enumerate(lines)
        if row not in rows and all(word in line.text for word in rule.contains) and pattern.search(line.text)
    ]
    mine = [lines[row].text for row in rows]
    chosen: list[str] = []
    while others and len(chosen) < _MOST_WORDS:
        tally: dict[str, int] = {}
        for text in others:
            for word in {*_WORD.findall(text), *_TOTAL.findall(text)}:
                tally[word] = tally.get(word, 0) + 1
        fit = [word for word in tally if not any(word in text for text in mine)]
        fit = [word for word in fit if not _TOTAL.fullmatch(word)] or fit
        if not fit:
            break
        best = max(fit, key=lambda word: (EVALUATION.search(word.lower()) is not None, tally[word], -len(word)))
        chosen.append(best)
        others = [text for text in others if best not in text]
    return tuple(chosen)
