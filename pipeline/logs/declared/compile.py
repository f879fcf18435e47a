"""Checked rules to a Dialect: whole columns of lines at a time, each line by the first rule that finds it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from sweepscope.pipeline.logs.declared.columns import PEAKS, Target
from sweepscope.pipeline.logs.declared.rules import Arguments, Document, File, Rule, key_regex, pair_regex
from sweepscope.pipeline.logs.dialect import Dialect, Sidecar
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.extractors import last_of_each_step, named_settings
from sweepscope.pipeline.logs.facts import EVENT_FACTS, PEAK_FACTS, SETTING_FACTS, STEP_FACTS, conform
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.timestamps import timestamp

_MAX_FILE_CHARS = 4 << 20


def compile_document(document: Document, *, revision: int = 1, claims: int = 0) -> Dialect:
    """The dialect that a document describes. `revision` grows with its changes; for `claims` see `Dialect`."""
    dumped = {name for dump in document.arguments for name in dump.columns}
    literals_by_function = {
        "steps": _contained(document.steps),
        "settings": tuple(sorted({*_contained(document.settings), *dumped, *environment.LITERALS})),
        "peaks": _contained(document.settings),
        "events": _contained(document.events),
    }
    return Dialect(
        name=document.name,
        module=__name__,
        revision=revision,
        is_declared=True,
        claims=claims,
        signature_literals=document.signature,
        literals_by_function=literals_by_function,
        steps=lambda lines: steps(lines, document.steps),
        settings=lambda lines: settings(lines, document.settings, document.arguments),
        peaks=lambda lines: peaks(lines, document.settings),
        events=lambda lines: events(lines, document.events),
        sidecars=tuple(Sidecar(file.pattern, "config", _reader(file)) for file in document.files),
        log_names=document.logs,
        finalize=last_of_each_step if document.repeated == "last" else None,
    )


def _contained(rules: Sequence[Rule]) -> tuple[str, ...]:
    return tuple(sorted({literal for rule in rules for literal in rule.contains}))


def steps(lines: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """STEP_FACTS of the lines that a rule finds, and without a step those that nearly are one."""
    rows = lines.with_columns(ts=_stamp()).with_row_index("row")
    found, near = [rows.head(0)], [rows.head(0)]
    for rule in rules:
        candidates = rows.filter(holds(rule)).join(pl.concat(found, how="diagonal"), on="row", how="anti")
        values = with_values(candidates, rule)
        is_found = values["step"].is_not_null()
        found.append(values.filter(is_found))
        near.append(candidates.filter(~is_found & candidates.select(is_near(rule)).to_series()))
    hits = pl.concat(found, how="diagonal")
    missed = pl.concat(near).unique("row", maintain_order=True).join(hits, on="row", how="anti", maintain_order="left")
    both = pl.concat([hits, missed], how="diagonal").sort("row")
    return conform(both, STEP_FACTS)


def settings(lines: pl.DataFrame, rules: Sequence[Rule], dumps: Sequence[Arguments]) -> pl.DataFrame:
    """SETTING_FACTS of every rule, of dumped arguments, and of what launchers print."""
    values = [_long(lines, rule, [name for name in rule.columns if name not in PEAKS]) for rule in rules]
    parts = [part.with_columns(setting_source=pl.lit("log_line")) for part in values]
    printed = [
        named_settings(
            lines.filter(pl.col("text").str.contains_any(list(dump.columns))),
            dump.regex,
            dump.columns,
            setting_source="argument_dump",
        )
        for dump in dumps
    ]
    facts = [conform(part.cast({"value": pl.String}), SETTING_FACTS) for part in parts]
    return pl.concat([*facts, *printed, environment.settings(lines)]).sort("source", "line_no", maintain_order=True)


def peaks(lines: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """PEAK_FACTS of the memory peaks that any rule names."""
    parts = [_long(lines, rule, [name for name in rule.columns if name in PEAKS]) for rule in rules]
    facts = [conform(part.with_columns(pl.col("value").cast(pl.Float64, strict=False)), PEAK_FACTS) for part in parts]
    return pl.concat([pl.DataFrame(schema=PEAK_FACTS), *facts])


def events(lines: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """EVENT_FACTS of the lines that a rule finds."""
    parts = [pl.DataFrame(schema=EVENT_FACTS)]
    for rule in rules:
        hits = lines.filter(holds(rule)).filter(pl.col("text").str.contains(rule.expression)).with_columns(ts=_stamp())
        hits = with_values(hits, rule) if rule.columns else hits
        parts.append(
            conform(hits.with_columns(kind=pl.lit(rule.kind), text=pl.col("text").str.strip_chars()), EVENT_FACTS)
        )
    return pl.concat(parts)


def holds(rule: Rule) -> pl.Expr:
    """Whether a line holds what every line of the rule holds; the pre-filter of its expressions."""
    text = pl.col("text")
    if rule.pairs and "step" not in rule.columns:
        return text.str.contains_any(list(rule.contains))
    return pl.all_horizontal(text.str.contains(literal, literal=True) for literal in rule.contains)


def is_near(rule: Rule) -> pl.Expr:
    """Whether a line that the rule does not find looks like one of its records all the same.

    It has the words a regex says its lines hold; or the step and another key of the pairs; or it begins like the
    line, up to its first value, and holds half of its other words, or ends too early.
    """
    text = pl.col("text")
    if rule.pairs is not None:
        others = [key for key, kept in rule.pairs.items() if kept.column != "step"]
        return text.str.contains(rule.contains[0], literal=True) & (
            text.str.contains_any(others) if others else pl.lit(value=False)
        )
    if rule.template is None:
        return pl.lit(value=True)
    labels = rule.template.labels
    present = [text.str.contains(label, literal=True).cast(pl.Int64) for label in labels]
    has_labels = pl.sum_horizontal(present) * 2 >= len(labels) if labels else pl.lit(value=False)
    begins = text.str.contains(rule.template.upto(rule.template.head))
    return begins & (has_labels | text.str.contains(rule.template.cut))


def with_values(lines: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    """`lines` with the columns that a rule fills, NULL in lines that it does not find."""
    text = pl.col("text")
    if rule.pairs is not None:
        # A key whose value cannot be read spoils the record: a record is whole or a reject.
        keys = {f"pair {number}": key for number, key in enumerate(rule.pairs)}
        patterns = {name: pair_regex(key, rule.pairs[key]) for name, key in keys.items()}
        values = extract_each(lines.select("text"), patterns).select(list(keys))
        lacks = values.select(pl.any_horizontal(pl.all().is_null())).to_series()
        part = lines.filter(lacks).select(
            (text.str.contains(key_regex(key)) & ~text.str.contains(pair_regex(key, rule.pairs[key]))).alias(name)
            for name, key in keys.items()
        )
        is_spoilt = lacks.scatter(lacks.arg_true(), part.select(pl.any_horizontal(pl.all())).to_series())
        whole = values.select(pl.when(~is_spoilt).then(pl.col(name)).alias(name) for name in keys)
        return lines.with_columns(whole.select(_typed(pl.col(name), rule.pairs[key]) for name, key in keys.items()))
    groups = lines.select(values=text.str.extract_groups(rule.expression)).unnest("values")
    return lines.with_columns(groups.select(_typed(pl.col(name), kept) for name, kept in rule.target_by_group.items()))


def _typed(text: pl.Expr, kept: Target) -> pl.Expr:
    value = kept.printed.read(text)
    if kept.dtype == pl.Int64:
        value = value.round().cast(pl.Int64, strict=False)
    elif kept.dtype not in (pl.String, pl.Boolean):
        value = value.cast(kept.dtype, strict=False)
    return value.alias(kept.column)


def _long(lines: pl.DataFrame, rule: Rule, names: Sequence[str]) -> pl.DataFrame:
    """One row per line and value: `source`, `line_no`, `name`, `value` as text."""
    nothing = pl.DataFrame(schema={"source": pl.Int64, "line_no": pl.Int64, "name": pl.String, "value": pl.String})
    if not names:
        return nothing
    values = with_values(lines.filter(holds(rule)), rule)
    parts = [
        values.select("source", "line_no", name=pl.lit(name), value=pl.col(name).cast(pl.String)).drop_nulls("value")
        for name in names
    ]
    return pl.concat([nothing, *parts])


def _stamp() -> pl.Expr:
    return pl.coalesce(timestamp(pl.col("text")), timestamp(pl.col("prefix")))


def _reader(file: File) -> Callable[[str], Mapping[str, str]]:
    def read_file(text: str) -> Mapping[str, str]:
        return read_configuration(text, file)

    return read_file


def read_configuration(text: str, file: File) -> Mapping[str, str]:
    """Settings of a configuration file. Raises ValueError when it is not of this trainer, or not of its form."""
    if len(text) > _MAX_FILE_CHARS:
        raise ValueError(f"larger than {_MAX_FILE_CHARS >> 20} MiB, too large for a configuration")
    try:
        data = _load(text, file.form)
    except RecursionError as error:
        raise ValueError("nests too deep") from error
    if missing := [key for key in file.requires if _at(data, key.split(".")) is None]:
        raise ValueError(f"no key {missing[0]!r}, which the dialect file requires")
    values = {name: _at(data, key.split(".")) for key, name in file.columns.items()}
    return {name: str(value) for name, value in values.items() if isinstance(value, str | int | float | bool)}


def _load(text: str, form: str) -> Any:
    if form == "json":
        return json.loads(text)
    if form == "toml":
        return tomllib.loads(text)
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 -- both are safe
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {str(error).splitlines()[0]}") from error


def _at(data: Any, path: Iterable[str]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data
