"""Rules of inferred settings, tried on the lines that they were made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from sweepscope.pipeline.logs.declared.compile import own_settings
from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.inference.setting_rules import SettingRules, setting_rules, stated_by
from sweepscope.pipeline.logs.inference.settings import Chosen
from sweepscope.pipeline.logs.inference.settings_by_launch import unclear_names
from sweepscope.pipeline.logs.inference.stated import Stated
from sweepscope.pipeline.logs.inference.toml_text import NAME, Draft, toml_text

_TRIES = 3
"""Places of a setting, at most, whose rules are tried."""


def tried_settings(
    chosen: Sequence[Chosen], found: Sequence[Stated], others: pl.DataFrame, launches: Sequence[int] = ()
) -> SettingRules:
    """Rules that read the settings: where one would read another value than was meant, that of the next place.

    A command that was wrapped in the middle of an option is such a place.

    Args:
        chosen: the settings, with the values that were meant.
        found: all that is stated.
        others: lines that are no steps: `line_no`, `text`.
        launches: numbers of the lines with which several launches begin, each of which may state other values.
    """
    unclear = unclear_names(found, launches)
    rules = setting_rules(chosen, unclear)
    frame = others.with_columns(source=pl.lit(0, pl.Int64), prefix=pl.lit(None, pl.String))
    wanted = {one.column: one.value for one in chosen if one.is_used and one.column in rules.by_column}
    refused: list[Stated] = []
    for left in reversed(range(_TRIES)):
        if not rules.by_column:
            break
        text = toml_text(Draft(NAME, ("signature",), settings=rules))
        document = read_document(text, "the inferred dialect", is_trusted=True, needs_steps=False)
        read = stated_by(own_settings(frame, document.settings, document.arguments))
        bad = {
            column
            for column, value in wanted.items()
            if column in rules.by_column and not _same(read.get(column), value)
        }
        if not bad:
            break
        refused += [rules.by_column[column][1] for column in bad]
        rules = setting_rules(chosen, unclear, refused) if left else _without(rules, bad)
    return rules


def _same(read: str | None, wanted: str) -> bool:
    """Whether a value is the wanted one, as a number or as a type's name: `torch.bfloat16` is `bf16`."""
    if read is None:
        return False
    try:
        return float(read.replace("_", "")) == float(wanted)
    except ValueError:
        return (
            read.strip("'\"").lower().removeprefix("torch.").replace("bfloat", "bf").replace("float", "fp")
            == wanted.lower()
            or read == wanted
        )


def _without(rules: SettingRules, bad: set[str]) -> SettingRules:
    """The rules without those of the `bad` columns."""
    kept = {
        line: {name: column for name, column in names.items() if column not in bad}
        for line, names in rules.arguments.items()
    }
    arguments = {line: names for line, names in kept.items() if names}
    named = {name for names in arguments.values() for name in names}
    lines = {piece for column, (piece, _) in rules.by_column.items() if column in bad}
    return replace(
        rules,
        arguments=arguments,
        words={name: words for name, words in rules.words.items() if name in named},
        settings={line: text for line, text in rules.settings.items() if line not in lines},
        by_column={column: found for column, found in rules.by_column.items() if column not in bad},
    )
