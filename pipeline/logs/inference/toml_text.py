"""The text of a dialect file from what was inferred, with the reasons as comments."""

from __future__ import annotations

from dataclasses import dataclass, field

from sweepscope.pipeline.logs.declared.rules import RANKS
from sweepscope.pipeline.logs.declared.toml_writer import toml_value
from sweepscope.pipeline.logs.inference.setting_rules import SettingRules
from sweepscope.pipeline.logs.inference.step_rules import StepRule
from sweepscope.pipeline.logs.inference.tables import Table

NAME = "my-trainer"
"""Of a generated file, until its user finds a better one."""


@dataclass(frozen=True)
class Draft:
    """Parts of a dialect file.

    Attributes:
        signature: texts that tell whose log it is; () where the steps tell.
        steps: rules of steps, each with a line as an example.
        table: rows under a header.
        settings: arguments, and lines with one setting.
        events: kind and line.
        repeated: "last" where of several lines of one step the last counts.
        labels: what a number with a colon in front of a line is.
    """

    name: str
    signature: tuple[str, ...]
    steps: tuple[tuple[StepRule, str], ...] = ()
    table: Table | None = None
    settings: SettingRules = field(default_factory=SettingRules)
    events: tuple[tuple[str, str], ...] = ()
    repeated: str = ""
    labels: str = RANKS


_HEAD = """\
# Inferred from one log. Correct what is wrong, try it with `sweepscope dialect test FILE LOG`, and keep it with
# `sweepscope ingest --dialect FILE PATH`. docs/dialects.md explains what may stand here.
"""

_LONG_HEADER = 60
_SIGNED = "# Text that only this trainer prints: choose better than a program can.\n"
_UNSIGNED = """\
# No signature: this file reads the logs that no other dialect knows and in which nearly all of its parts are found."""


def toml_text(draft: Draft) -> str:
    """The file."""
    signature = f"{_SIGNED}signature = {toml_value(draft.signature)}" if draft.signature else _UNSIGNED
    blocks = [f"{_HEAD}name = {toml_value(draft.name)}\n{signature}"]
    blocks += [f"repeated = {toml_value(draft.repeated)}"] if draft.repeated else []
    blocks += [f"labels = {toml_value(draft.labels)}"] if draft.labels != RANKS else []
    blocks += [_step(rule, example) for rule, example in draft.steps]
    blocks += [_rows(draft.table)] if draft.table else []
    rules = draft.settings
    for line, columns in rules.arguments.items():
        mine = {name: words for name, words in rules.words.items() if name in columns}
        words = f"\nwords = {toml_value(mine)}" if mine else ""
        blocks.append(f"[[arguments]]\nline = {toml_value(line)}\ncolumns = {toml_value(columns)}{words}")
    blocks += [
        f"[[setting]]\n# {_comment(example)}\nline = {toml_value(line)}" for line, example in rules.settings.items()
    ]
    blocks += [f"[[event]]\nkind = {toml_value(kind)}\nline = {toml_value(line)}" for kind, line in draft.events]
    return "\n\n".join(blocks) + "\n"


def _rows(table: Table) -> str:
    lines = ["[[step]]", *([f"# {_comment(table.header)}"] if table.header else [])]
    lines += [f"# {_comment(table.example[1])}", f"cells = {toml_value(table.cells)}"]
    lines += [f"separator = {toml_value(table.separator)}"] if table.separator != " " else []
    without = f"without = {toml_value([table.header[:_LONG_HEADER]])}"  # it is no row that cannot be read
    lines += [without] if table.header else []
    return "\n".join(lines)


def _step(rule: StepRule, example: str) -> str:
    notes = list(dict.fromkeys(f"# {guess.column}: {guess.confidence}, {guess.reason}" for guess in rule.guesses))
    notes += [f"# {piece}: {why}" for piece, why in rule.passed.items()]
    parts = (*rule.parts, *rule.passed)
    lines = ["[[step]]", f"# {_comment(example)}", *map(_comment, notes), f"parts = {toml_value(parts)}"]
    lines += [
        f"{key} = {toml_value(words)}"
        for key, words in (("contains", rule.contains), ("without", rule.without))
        if words
    ]
    lines += [f"first_epoch = {rule.first_epoch}"] if rule.first_epoch else []
    lines += [f"epoch_line = {toml_value(rule.epoch_line)}"] if rule.epoch_line else []
    lines += [f"epoch_line_is = {toml_value(rule.epoch_line_is)}"] if rule.epoch_line_is != "above" else []
    lines += [f"counts = {toml_value(rule.counts)}"] if rule.counts != "steps" else []
    below = {key: f"{guess.column}:{guess.word}" if guess.word else guess.column for key, guess in rule.below.items()}
    lines += [f"below = {toml_value(below)}"] if below else []
    return "\n".join(lines)


def _comment(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text.strip())[:300]
