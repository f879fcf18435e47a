"""Checked rules to a Dialect, whose functions read whole columns of lines at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from sweepscope.pipeline.logs.declared.columns import PEAKS
from sweepscope.pipeline.logs.declared.configuration import read_configuration
from sweepscope.pipeline.logs.declared.epoch_lines import EpochLines
from sweepscope.pipeline.logs.declared.fit import fit_of
from sweepscope.pipeline.logs.declared.rules import STEPS, Arguments, Document, File, Rule
from sweepscope.pipeline.logs.declared.steps import finalizer, steps
from sweepscope.pipeline.logs.declared.values import candidates, with_values
from sweepscope.pipeline.logs.dialect import Dialect, Fit, Sidecar
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.engine.cleaning import with_numbers
from sweepscope.pipeline.logs.extractors import as_commands, named_settings
from sweepscope.pipeline.logs.facts import EVENT_FACTS, PEAK_FACTS, SETTING_FACTS, conform
from sweepscope.pipeline.text.timestamps import times_of


def compile_document(document: Document, *, revision: int = 1, claims: int = 0, is_declared: bool = True) -> Dialect:
    """The dialect that a document describes; for the other arguments see `Dialect`."""
    epochs = EpochLines.of(document.steps)
    dumped = {literal for dump in document.arguments for literal in dump.literals}
    literals_by_function = {
        "steps": _contained(document.steps),
        "settings": tuple(sorted({*_contained(document.settings), *dumped, *environment.LITERALS, *epochs.literals})),
        "peaks": _contained([rule for rule in document.settings if set(PEAKS) & set(rule.columns)]),
        "events": _contained(document.events),
    }
    return Dialect(
        name=document.name,
        module=__name__,
        revision=revision,
        is_declared=is_declared,
        claims=claims,
        signature_literals=document.signature,
        literals_by_function=literals_by_function,
        steps=lambda lines: steps(lines, document.steps),
        settings=lambda lines: settings(lines, document.settings, document.arguments, epochs),
        peaks=lambda lines: peaks(lines, document.settings),
        events=lambda lines: events(lines, document.events),
        sidecars=tuple(Sidecar(file.pattern, "config", _reader(file)) for file in document.files),
        log_names=document.logs,
        finalize=finalizer(document),
        fit=None if document.signature else lambda lines: _fit(lines, document),
        has_numbered_lines=document.labels == STEPS,
        constants=tuple((one.folder, one.values) for one in document.constants),
    )


def _fit(lines: pl.DataFrame, document: Document) -> Fit:
    rows = lines.with_columns(source=pl.lit(0, pl.Int64))
    rows = with_numbers(rows) if document.labels == STEPS else rows
    return fit_of(rows, document.steps, own_settings(rows, document.settings, document.arguments))


def _contained(rules: Sequence[Rule]) -> tuple[str, ...]:
    return tuple(sorted({literal for rule in rules for literal in rule.literals}))


def settings(
    lines: pl.DataFrame, rules: Sequence[Rule], dumps: Sequence[Arguments], epochs: EpochLines
) -> pl.DataFrame:
    """SETTING_FACTS of every rule, of dumped arguments, of lines above epochs, and of what launchers print."""
    of_machines = [environment.settings(lines), environment.ranks(lines), environment.launchers(lines)]
    facts = [own_settings(lines, rules, dumps), epochs.read(lines), *of_machines]
    return pl.concat(facts).sort("source", "line_no", maintain_order=True)


def own_settings(lines: pl.DataFrame, rules: Sequence[Rule], dumps: Sequence[Arguments]) -> pl.DataFrame:
    """SETTING_FACTS of every rule and of dumped arguments."""
    values = [_long(lines, rule, [name for name in rule.columns if name not in PEAKS]) for rule in rules]
    parts = [part.with_columns(setting_source=pl.lit("log_line")) for part in values]
    printed = [_dumped(lines, dump) for dump in dumps]
    facts = [conform(part.cast({"value": pl.String}), SETTING_FACTS) for part in parts]
    return pl.concat([pl.DataFrame(schema=SETTING_FACTS), *facts, *printed])


_LIST_OF_ONE = r"^\[(.*)\]$"


def _dumped(lines: pl.DataFrame, dump: Arguments) -> pl.DataFrame:
    """SETTING_FACTS of printed arguments, in our words."""
    near = as_commands(lines.filter(pl.col("text").str.contains_any(list(dump.literals))))
    names = {name: name for name in dump.columns}
    facts = named_settings(near, dump.regex, names, setting_source="argument_dump")
    facts = facts.with_columns(pl.col("value").str.replace(_LIST_OF_ONE, "${1}").str.strip_chars("'\""))
    value = pl.col("value")
    for name, words in dump.words.items():
        ours = pl.col("value").replace_strict(dict(words), default=None, return_dtype=pl.String)
        value = pl.when(pl.col("name") == name).then(ours).otherwise(value)
    return facts.with_columns(pl.col("name").replace_strict(dict(dump.columns)), value=value).drop_nulls("value")


def peaks(lines: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """PEAK_FACTS of the memory peaks that any rule names."""
    parts = [_long(lines, rule, [name for name in rule.columns if name in PEAKS]) for rule in rules]
    facts = [conform(part.with_columns(pl.col("value").cast(pl.Float64, strict=False)), PEAK_FACTS) for part in parts]
    return pl.concat([pl.DataFrame(schema=PEAK_FACTS), *facts])


def events(lines: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """EVENT_FACTS of the lines that a rule finds."""
    parts = [pl.DataFrame(schema=EVENT_FACTS)]
    for rule in rules:
        hits = candidates(lines, rule).filter(pl.col("text").str.contains(rule.expression))
        hits = hits.with_columns(times_of(hits))
        hits = with_values(hits, rule) if rule.columns else hits
        parts.append(
            conform(hits.with_columns(kind=pl.lit(rule.kind), text=pl.col("text").str.strip_chars()), EVENT_FACTS)
        )
    return pl.concat(parts)


def _long(lines: pl.DataFrame, rule: Rule, names: Sequence[str]) -> pl.DataFrame:
    """One row per line and value: `source`, `line_no`, `name`, `value` as text."""
    nothing = pl.DataFrame(schema={"source": pl.Int64, "line_no": pl.Int64, "name": pl.String, "value": pl.String})
    if not names:
        return nothing
    values = with_values(candidates(lines, rule), rule)
    parts = [
        values.select("source", "line_no", name=pl.lit(name), value=pl.col(name).cast(pl.String)).drop_nulls("value")
        for name in names
    ]
    return pl.concat([nothing, *parts])


def _reader(file: File) -> Callable[[str], Mapping[str, str]]:
    def read_file(text: str) -> Mapping[str, str]:
        return read_configuration(text, file)

    return read_file
