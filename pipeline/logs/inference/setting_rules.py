"""Chosen settings as rules of a dialect file, each tried on the lines that state it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from sweepscope.pipeline.logs.inference.sentences import MAGNITUDES, UNITS
from sweepscope.pipeline.logs.inference.setting_values import SIZE
from sweepscope.pipeline.logs.inference.settings import Chosen
from sweepscope.pipeline.logs.inference.stated import Stated
from sweepscope.pipeline.logs.inference.units import number_of
from sweepscope.pipeline.logs.synonyms import FLAGS, words

_LINES = {"=": "{name} = {value}", ":": "{name} : {value}", ":=": "{name} := {value}"} | {
    mark: f"{{name}} {mark} {{value}}" for mark in ("->", "=>", "|", "│", "┃")
}
_OPTIONS = {"": "--{name} {value}", "=": "--{name}={value}"}
_FEW_VALUES = 5
_MAGNITUDE = re.compile(rf"(?i)\s*({'|'.join(MAGNITUDES)})")
_UNIT = re.compile(rf"(?i)[(\[](?:in )?({'|'.join(UNITS)})s?[)\]]\s?[:=]\s*$")
_SWITCHED = {"True": "full", "true": "full", "False": "none", "false": "none", "None": "none"}
_WORDS = {
    "recompute": {**_SWITCHED, **{word: word for word in ("full", "selective", "none")}},
    "zero_stage": {
        f"{zero}{stage}": stage
        for zero in ("", *(f"{word}{mark}" for word in ("zero", "Zero", "ZERO", "ZeRO") for mark in ("", "-", "_")))
        for stage in "0123"
    },
}


@dataclass
class SettingRules:
    """Tables of a dialect file.

    Attributes:
        arguments: printed name to column of each [[arguments]], by the form of its line.
        words: printed name to what its values mean.
        settings: line and example of each [[setting]].
        by_column: piece and source of each column that is read.
    """

    arguments: dict[str, dict[str, str]] = field(default_factory=dict)
    words: dict[str, Mapping[str, str]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    by_column: dict[str, tuple[str, Stated]] = field(default_factory=dict)


def setting_rules(chosen: Iterable[Chosen], unclear: Collection[str], refused: Collection[Stated] = ()) -> SettingRules:
    """Rules for the settings that are believed.

    Args:
        chosen: the settings.
        unclear: names that state other values, too, and are left out.
        refused: places whose rule reads another value there.
    """
    rules = SettingRules()
    for believed in chosen:
        if not believed.is_used:
            continue
        sources = sorted(believed.sources, key=lambda source: (source.sure, source.form not in ("option", "word")))
        for source in [source for source in sources if source not in refused][:3]:
            if source.name in unclear and source.name:
                continue
            if _as_argument(rules, source) or _as_line(rules, source):
                break
    return rules


def _as_argument(rules: SettingRules, source: Stated) -> bool:
    """Whether the value can be read as one of the arguments; it is then added to them."""
    mark = source.separator.strip()
    line = _OPTIONS.get(mark) if source.form == "option" else _LINES.get(mark)
    if source.form not in ("option", "word") or line is None or "," in source.printed:
        return False
    if mark == ":" and source.text[: source.head].rstrip().endswith(":"):
        return False  # `config: batch_size: 64` is one argument, whose value is `batch_size`
    if not re.fullmatch(r"[A-Za-z][\w./-]*", source.name) or any(
        source.name in names for names in rules.arguments.values()
    ):
        return False
    flag = FLAGS.get(words(re.split(r"[./]", source.name)[-1]))
    meant = _spellings(flag[1], source.printed) if flag else _WORDS.get(source.column)
    if SIZE.fullmatch(source.printed) and source.printed[-1].islower():  # `8b`: no number that a dialect file reads
        meant = {source.printed: source.value}
    number = number_of(source.printed)
    is_plain = source.printed == source.value or (number is not None and re.search("[A-Za-z]$", source.printed) is None)
    if not (is_plain or meant or source.column == "precision"):
        return False
    rules.arguments.setdefault(line, {})[source.name] = source.column
    if meant:
        rules.words[source.name] = meant
    rules.by_column[source.column] = (line.replace("{name}", source.name), source)
    return True


def _spellings(values: Mapping[str, str], printed: str) -> dict[str, str]:
    """The values as they may be spelt: small, with a capital, in capitals; of many values that of the printed one."""
    if len(values) > _FEW_VALUES:
        return {printed: values[printed.lower()]}
    return {form: ours for value, ours in values.items() for form in (value, value.capitalize(), value.upper())}


def _as_line(rules: SettingRules, source: Stated) -> bool:
    """Add the line with the value's column in place of the value."""
    word = ":human" if re.search("[A-Za-z]$", source.printed) and number_of(source.printed) is not None else ""
    if source.value != source.printed and not word and number_of(source.printed) is None:
        return False
    before = _squeezed(source.text[source.head : source.begin])
    behind = ""
    if not source.name:  # a sentence: the noun behind the number, and the word before it
        before = _squeezed(source.text[source.head : source.begin]) or _last_word(source.text[: source.begin])
        noun = re.match(r"\s*x?\s*(?:[A-Za-z-]+\s){0,2}?[^\W\d_]+|\s?[,;|)]", source.text[source.end :])
        behind = _squeezed(noun[0]) if noun else ""
    dots = re.compile(r"\s*(\.{2,})\s*$")
    if dotted := dots.search(before):
        before = before[: dotted.start()] + " {_} "
    if not re.search(r"[^\W\d_]", before.replace("{_}", "") + behind):
        return False
    magnitude = _MAGNITUDE.match(source.text, source.end) or _UNIT.search(source.text[: source.begin])
    if magnitude and source.form == "sentence":
        word = f":{UNITS[magnitude[1].lower()][1]}"
    kind = ":text" if source.column in ("accelerator",) else word
    line = f"{before}{{{source.column}{kind}}}{behind}"
    rules.settings[line] = source.text
    rules.by_column[source.column] = (line, source)
    return True


def _last_word(text: str) -> str:
    found = re.search(r"[^\W\d_]+\s*$", text)
    return _squeezed(found[0]) if found else ""


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("{", "{{").replace("}", "}}")


def stated_by(settings: pl.DataFrame) -> dict[str, str]:
    """The value by name that SETTING_FACTS come to: log lines count more than dumps, later ones more than earlier."""
    ranked = settings.with_columns(is_line=pl.col("setting_source") == "log_line").sort("is_line", "line_no")
    return dict(ranked.select("name", "value").iter_rows())
