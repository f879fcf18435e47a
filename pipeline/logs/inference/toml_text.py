"""The text of a dialect file from what was inferred, with the reasons as comments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sweepscope.pipeline.logs.inference.columns import Guess
from sweepscope.pipeline.logs.inference.setting_rules import SettingRules
from sweepscope.pipeline.logs.inference.step_rules import StepRule
from sweepscope.pipeline.logs.inference.tables import Table


@dataclass(frozen=True)
class Draft:
    """Parts of a dialect file.

    Attributes:
        signature: texts that tell whose log it is.
        steps: rules of steps, each with a line as an example.
        table: rows under a header.
        settings: arguments, and lines with one setting.
        events: kind and line.
        left_out: guesses that were not sure enough.
    """

    name: str
    signature: tuple[str, ...]
    steps: tuple[tuple[StepRule, str], ...] = ()
    table: Table | None = None
    settings: SettingRules = field(default_factory=SettingRules)
    events: tuple[tuple[str, str], ...] = ()
    left_out: tuple[tuple[Guess, str], ...] = field(default=())


_HEAD = """\
# Inferred from one log. Correct what is wrong, try it with `sweepscope dialect test FILE LOG`, and keep it with
# `sweepscope ingest --dialect FILE PATH`. docs/dialects.md explains what may stand here.
"""


def toml_text(draft: Draft) -> str:
    """The file."""
    blocks = [
        f"{_HEAD}name = {_text(draft.name)}\n# Text that only this trainer prints: choose better than a program can.\n"
        f"signature = {_list(draft.signature)}"
    ]
    blocks += [_step(rule, example) for rule, example in draft.steps]
    blocks += [_rows(draft.table)] if draft.table else []
    rules = draft.settings
    for line, columns in rules.arguments.items():
        mine = {name: words for name, words in rules.words.items() if name in columns}
        words = f"\nwords = {_nested(mine)}" if mine else ""
        blocks.append(f"[[arguments]]\nline = {_text(line)}\ncolumns = {_table(columns)}{words}")
    blocks += [f"[[setting]]\n# {_comment(example)}\nline = {_text(line)}" for line, example in rules.settings.items()]
    blocks += [f"[[event]]\nkind = {_text(kind)}\nline = {_text(line)}" for kind, line in draft.events]
    if draft.left_out:
        notes = [
            f"#   {guess.column}: {guess.reason} ({guess.confidence})\n#     {_comment(text)}"
            for guess, text in draft.left_out
        ]
        blocks.append("# Not sure enough to be read; add a part for what you know:\n" + "\n".join(notes))
    return "\n\n".join(blocks) + "\n"


def _rows(table: Table) -> str:
    lines = [
        "[[step]]",
        f"# {_comment(table.header)}",
        f"# {_comment(table.example[1])}",
        f"cells = {_list(table.cells)}",
    ]
    lines += [f"separator = {_text(table.separator)}"] if table.separator != " " else []
    return "\n".join(lines)


def _step(rule: StepRule, example: str) -> str:
    notes = list(dict.fromkeys(f"# {guess.column}: {guess.confidence}, {guess.reason}" for guess in rule.guesses))
    lines = ["[[step]]", f"# {_comment(example)}", *notes, f"parts = {_list(rule.parts)}"]
    lines += [
        f"{key} = {_list(words)}" for key, words in (("contains", rule.contains), ("without", rule.without)) if words
    ]
    lines += [f"first_epoch = {rule.first_epoch}"] if rule.first_epoch else []
    below = {key: f"{guess.column}:{guess.word}" if guess.word else guess.column for key, guess in rule.below.items()}
    lines += [f"below = {_table(below)}"] if below else []
    return "\n".join(lines)


def _comment(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text.strip())[:300]


def _text(text: str) -> str:
    """A text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(texts: Sequence[str]) -> str:
    if len(texts) > 3:
        return "[\n" + "".join(f"  {_text(text)},\n" for text in texts) + "]"
    return "[" + ", ".join(map(_text, texts)) + "]"


def _table(pairs: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f"{_text(key)} = {_text(value)}" for key, value in pairs.items()) + " }"


def _nested(tables: Mapping[str, Mapping[str, str]]) -> str:
    return "{ " + ", ".join(f"{_text(key)} = {_table(value)}" for key, value in tables.items()) + " }"
