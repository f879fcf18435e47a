"""Documents' advice on layouts, as data (`data/rules`); `rule_scores` compares it with measurements."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
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


@cache
def load_rules(path: Path = data.HOME / "rules" / "rules.toml") -> Book:
    """The rules of a file. Raises InputError that names the rule for a condition that is no SQL or an unknown word."""
    text = tomllib.loads(path.read_text(encoding="utf-8"))
    documents = {name: str(entry["title"]) for name, entry in text["documents"].items()}
    shorts = {name: str(entry["short"]) for name, entry in text["documents"].items()}
    steps = tuple(Step(**entry) for entry in text["step"])
    rules = tuple(Rule(**entry) for entry in text["rule"])
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
    return Book(documents, shorts, steps, rules)
