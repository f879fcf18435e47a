"""Documents' advice on layouts, as data (`data/rules`); `rule_scores` compares it with measurements."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Final

import polars as pl

from sweepscope import data
from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.reference.layout_text import LAYOUT

QUESTION: Final = pl.Schema(
    {
        "params": pl.Float64,
        "num_gpus": pl.Int64,
        "num_nodes": pl.Int64,
        "gpus_per_node": pl.Int64,
        "seq_len": pl.Int64,
        "gbs_tokens": pl.Int64,
        "is_moe": pl.Boolean,
        "is_gpu_poor": pl.Boolean,
    }
)
"""What the condition of a rule may ask."""


@dataclass(frozen=True)
class Rule:
    """One piece of advice. `when`, `among` and `advice` are SQL conditions; `says` is our paraphrase."""

    id: str
    set: str
    document: str
    section: str
    step: str
    says: str
    when: str
    advice: str
    among: str = "TRUE"


@dataclass(frozen=True)
class Step:
    """A step of the recipe."""

    id: str
    name: str
    question: str


@dataclass(frozen=True)
class Book:
    """All rules, the steps that they belong to, and the documents' titles in full and in short."""

    documents: Mapping[str, str]
    shorts: Mapping[str, str]
    steps: tuple[Step, ...]
    rules: tuple[Rule, ...]

    def title(self, rule: Rule) -> str:
        """The document of a rule."""
        return self.documents[rule.document]


OWN: Final = "own"
"""The document that rules of one's own are of, where they name no other."""
OWN_FILE: Final = "rules.toml"
"""Name of the file in a home."""


@cache
def load_rules(path: Path = data.HOME / "rules" / "rules.toml") -> Book:
    """The rules of a file. Raises InputError that names the rule for a condition that is no SQL or an unknown word."""
    text = tomllib.loads(path.read_text(encoding="utf-8"))
    documents = {name: str(entry["title"]) for name, entry in text["documents"].items()}
    shorts = {name: str(entry["short"]) for name, entry in text["documents"].items()}
    steps = tuple(Step(**entry) for entry in text["step"])
    rules = tuple(Rule(**entry) for entry in text["rule"])
    _check(path, rules, documents, steps)
    return Book(documents, shorts, steps, rules)


def rules_of(home: Path) -> Book:
    """The bundled rules with those of `rules.toml` in a home, if there is one.

    A rule there needs `id`, `step`, `says` and `advice`; one with the id of a bundled rule takes its place, and
    `off = ["ID", ...]` at the top leaves rules out. Raises InputError that names file, rule and remedy.
    """
    path, book = home / OWN_FILE, load_rules()
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return book
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: not readable as TOML ({error}).") from error
    rules = tuple(_own_rule(path, entry) for entry in text.get("rule", []))
    documents = {**book.documents, OWN: f"Rules of your own ({path})"}
    _check(path, rules, documents, book.steps)
    off = {str(name) for name in text.get("off", [])}
    if unknown := off - {rule.id for rule in book.rules}:
        raise InputError(
            f"{path}: off names no bundled rule: {', '.join(sorted(unknown))}. `sweepscope rules` lists them."
        )
    own = {rule.id for rule in rules}
    kept = tuple(rule for rule in book.rules if rule.id not in off | own)
    return Book(documents, {**book.shorts, OWN: "your own"}, book.steps, (*rules, *kept))


_DEFAULTS = {"set": "your own", "document": OWN, "section": OWN_FILE, "when": "TRUE"}


def _own_rule(path: Path, entry: object) -> Rule:
    name = entry.get("id", "without id") if isinstance(entry, dict) else "without id"
    given = {**_DEFAULTS, **entry} if isinstance(entry, dict) else {}
    known = {field.name for field in fields(Rule)}
    missing = [field for field in ("id", "step", "says", "advice") if not given.get(field)]
    if missing or set(given) - known or not all(isinstance(value, str) for value in given.values()):
        raise InputError(
            f"{path}: rule {name} needs texts for id, step, says and advice, and may have when, among, set and section."
        )
    return Rule(**given)


def _check(path: Path, rules: Sequence[Rule], documents: Mapping[str, str], steps: Sequence[Step]) -> None:
    """Raises InputError for a rule that names an unknown document, step or column, or whose condition is none."""
    known = {*QUESTION, *LAYOUT}
    for rule in rules:
        if rule.document not in documents or rule.step not in {step.id for step in steps}:
            raise InputError(f"{path}: rule {rule.id} names an unknown document or step.")
        for condition, allowed in ((rule.when, set(QUESTION)), (rule.among, known), (rule.advice, known)):
            try:
                asked = set(pl.sql_expr(condition).meta.root_names())
            except pl.exceptions.PolarsError as error:
                raise InputError(f"{path}: rule {rule.id}: {condition!r} is no condition ({error}).") from error
            if strange := asked - allowed:
                raise InputError(f"{path}: rule {rule.id} asks for {', '.join(sorted(strange))}: no such column.")
