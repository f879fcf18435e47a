"""What a dialect file states, checked: its kinds of lines, its configuration files, and what each fills."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sweepscope.pipeline.logs.declared.columns import EPOCH_STEP, Target
from sweepscope.pipeline.logs.declared.line_template import Template, value

BATCH_OF = {"samples": "gbs", "rank_samples": "mbs", "tokens": "gbs_tokens"}
"""Setting that makes steps of what is counted, see Rule.counts."""
EPOCHS, LINES = "epochs", "lines"
RANKS, STEPS = "ranks", "steps"
COUNTED = ("steps", EPOCHS, LINES, *BATCH_OF)


@dataclass(frozen=True)
class Rule:
    """One kind of line.

    Exactly one of `template`, `regex`, `pairs` and `parts` is given; of a row of cells, `regex`.

    Attributes:
        location: its file and line, such as "acme.toml:12".
        label: its number and kind, for messages.
        regex: named groups, `targets` of which are kept; `is_blind` where lines of one template may share a search.
        pairs: key as printed to what it fills.
        parts: pieces of the line, which stand in any order; of a step, the first has its number.
        contains: literals that every such line holds.
        any_of: literals of which every such line holds one; () for any line.
        without: literals that no such line holds.
        kind: of an event.
        first_epoch, epoch_steps: of steps that are counted within their epoch: the number of the first epoch, and the
            length of an epoch where no line prints it.
        counts: what its lines count: "steps"; "epochs", where no line numbers a step; "lines", where none has a number
            at all, and each is one more; "samples" or "tokens" of the job, or "rank_samples" of one process, from which
            steps follow by the global batch or the micro-batch that the same log states.
        below: key as printed in the lines below a step to what it fills.
        epoch_line: the line above the steps of an epoch, which has its number, or that below them: see `epoch_line_is`.
    """

    location: str
    label: str
    contains: tuple[str, ...]
    template: Template | None = None
    regex: str = ""
    pairs: Mapping[str, Target] | None = None
    targets: Mapping[str, Target] | None = None
    is_blind: bool = False
    parts: tuple[Template, ...] = ()
    any_of: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    kind: str = ""
    first_epoch: int = 0
    epoch_steps: int | None = None
    counts: str = "steps"
    below: Mapping[str, Target] = field(default_factory=dict)
    epoch_line: Template | None = None
    epoch_line_is: str = "above"

    @property
    def expression(self) -> str:
        """Finds the line; "" of pairs and parts."""
        return self.template.regex if self.template else self.regex

    @property
    def target_by_group(self) -> dict[str, Target]:
        """What each named group of `expression` fills."""
        if self.template:
            return {field.target.column: field.target for field in self.template.fields if field.target}
        return dict(self.targets or {})

    @property
    def filled(self) -> list[Target]:
        """What the rule fills."""
        if self.parts:
            return [field.target for part in self.parts for field in part.fields if field.target]
        return list((self.pairs if self.pairs is not None else self.target_by_group).values())

    @property
    def columns(self) -> list[str]:
        """Columns that the rule fills."""
        return list(dict.fromkeys(target.column for target in self.filled))

    @property
    def counts_steps(self) -> bool:
        """Whether its lines tell the number of a step, or are numbered themselves."""
        return self.counts == LINES or not {"step", EPOCH_STEP}.isdisjoint(self.columns)

    @property
    def literals(self) -> tuple[str, ...]:
        """Literals of which every such line holds one, and every line below it that counts."""
        return (*((max(self.contains, key=len),) if self.contains else self.any_of), *self.below)


@dataclass(frozen=True)
class Arguments:
    """Lines that each print the name and the value of a setting.

    `columns` maps those names; `words`, for some of them, printed values to ours: other values of theirs say nothing.
    A line that names one of them holds one of `literals`.
    """

    location: str
    label: str
    regex: str
    literals: tuple[str, ...]
    columns: Mapping[str, str]
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class File:
    """A configuration file beside the log: `columns` maps dotted keys, `requires` names keys that make it ours.

    `words` as of `Arguments`.
    """

    location: str
    pattern: str
    form: str
    columns: Mapping[str, str]
    requires: tuple[str, ...]
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Constants:
    """Values that hold for the logs in a folder, "" for all, by column of `runs`."""

    folder: str
    values: Mapping[str, str]


@dataclass(frozen=True)
class Document:
    """A checked dialect file. Without a `signature` it is for logs that no other dialect knows.

    `labels`: what a number with a colon in front of a line is: the rank that `srun --label` puts there, or its step.
    """

    name: str
    description: str
    signature: tuple[str, ...]
    logs: tuple[str, ...]
    repeated: str
    steps: tuple[Rule, ...]
    settings: tuple[Rule, ...]
    arguments: tuple[Arguments, ...]
    events: tuple[Rule, ...]
    files: tuple[File, ...]
    constants: tuple[Constants, ...] = ()
    labels: str = RANKS


SIGNS_BELOW = r"(?:[:=|│]|\.{2,})"
"""What parts keys from values in the lines below a step: `| loss | 2.31 |` and `loss .... 2.31`, too."""


def key_regex(key: str, signs: str = "[:=]") -> str:
    """Finds a key of pairs, whatever its value."""
    return rf"""(?:^|[^\w./-])["']?{re.escape(key)}["']?\s*{signs}"""


def pair_regex(key: str, target: Target, signs: str = "[:=]") -> str:
    """Finds `key=value`, `key: value`, `"key": value`, or `| key | value |` by a bar as sign: the value in a group."""
    return rf"""{key_regex(key, signs)}\s*["']?{value(target)}(?:[^\w.]|\.\s|\.?$)"""
