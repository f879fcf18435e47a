"""What a dialect file states, checked: its kinds of lines, its configuration files, and what each fills."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sweepscope.pipeline.logs.declared.columns import Target
from sweepscope.pipeline.logs.declared.line_template import Template, value


@dataclass(frozen=True)
class Rule:
    """One kind of line.

    Exactly one of `template`, `regex` and `pairs` is given.

    Attributes:
        location: its file and line, such as "acme.toml:12".
        label: its number and kind, for messages.
        regex: named groups, `targets` of which are kept.
        pairs: key as printed to what it fills.
        contains: literals that every such line holds.
        kind: of an event.
    """

    location: str
    label: str
    contains: tuple[str, ...]
    template: Template | None = None
    regex: str = ""
    pairs: Mapping[str, Target] | None = None
    targets: Mapping[str, Target] | None = None
    kind: str = ""

    @property
    def expression(self) -> str:
        """Finds the line; "" of pairs."""
        return self.template.regex if self.template else self.regex

    @property
    def target_by_group(self) -> dict[str, Target]:
        """What each named group of `expression` fills."""
        if self.template:
            return {field.target.column: field.target for field in self.template.fields if field.target}
        return dict(self.targets or {})

    @property
    def columns(self) -> list[str]:
        """Columns that the rule fills."""
        filled = self.pairs if self.pairs is not None else self.target_by_group
        return [target.column for target in filled.values()]


@dataclass(frozen=True)
class Arguments:
    """Lines that each print the name and the value of a setting; `columns` maps those names."""

    location: str
    label: str
    regex: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class File:
    """A configuration file beside the log: `columns` maps dotted keys, `requires` names keys that make it ours."""

    location: str
    pattern: str
    form: str
    columns: Mapping[str, str]
    requires: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """A checked dialect file."""

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


def key_regex(key: str) -> str:
    """Finds a key of pairs, whatever its value."""
    return rf"""(?:^|[^\w./-])["']?{re.escape(key)}["']?\s*[:=]"""


def pair_regex(key: str, target: Target) -> str:
    """Finds `key=value`, `key: value` or `"key": value`, and the value in a group."""
    return rf"""{key_regex(key)}\s*["']?{value(target)}(?:[^\w.]|\.\s|\.?$)"""
