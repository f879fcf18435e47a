"""The editor of a dialect file: what printed values mean, what the logs do not print, and a file to keep."""

from __future__ import annotations

import re
import shlex
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import editing
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text import inferred_logs as texts
from sweepscope.dashboard.text import meanings as words
from sweepscope.dashboard.view_models.inferred_logs import Form, proposed_name
from sweepscope.dashboard.widgets import basic, tables
from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.inspection import correct_dialect
from sweepscope.pipeline.inspection.correct_dialect import Trial, Value
from sweepscope.pipeline.store import published

_Item = TypeVar("_Item")

_PER_ROW = 3
_TEXT_CONSTANTS = ("model", "accelerator")
_OUTCOME = "dialect_outcome"
ALL_LOGS = "all logs of this form"


@dataclass(frozen=True)
class _Outcome:
    """What became of a corrected file: the message of an error or where it lies, and the trials."""

    text: str
    error: str = ""
    kept_at: str = ""
    trials: tuple[Trial, ...] = ()


def draw(form: Form, columns: pl.DataFrame, taken: Sequence[str]) -> None:
    """The editor of one form.

    Args:
        form: the logs.
        columns: of `queries.health.inferred_columns` of one of them.
        taken: names of the home's dialect files.
    """
    if not form.text:
        basic.note(texts.settings_only(form.logs[0], is_table=form.is_table))
        _draw_columns(columns)
        return
    basic.section("What its lines mean", texts.of_logs(form.logs))
    line_no = next((row["line_no"] for row in columns.to_dicts() if row["example"] == form.example), None)
    basic.log_lines([(line_no, form.example, "")] if form.example else [])
    basic.note(texts.instructions(is_kept=form.kept_as is not None))
    key = f"dialect_{zlib.crc32(repr((form.logs[:1], correct_dialect.form_of(form.text))).encode()):x}"
    values = correct_dialect.values_of(form.text, form.example)
    guesses = columns.to_dicts()
    steps = [value for value in values if value.is_step and not value.is_counter]
    settings = [value for value in values if not value.is_step]
    chosen = _draw_values(steps, guesses, words.STEP_MEANINGS, key)
    if settings:
        with st.expander(f"Settings that the logs print · {numbers.number(len(settings))}"):
            chosen |= _draw_values(settings, guesses, words.SETTING_MEANINGS, key)
    basic.section("What its logs do not print", "constants; a value that a log prints counts more")
    folder = _draw_folder(form, key)
    constants = _draw_constants(form, folder, key)
    name = _draw_name(form, taken, key)
    try:
        text = correct_dialect.corrected(
            form.text, chosen, name=name, constants=constants, folder=folder, example=form.example
        )
    except SweepscopeError as error:
        basic.problem(str(error))
        return
    _draw_end(form, text, name, key)


def _draw_values(
    values: Sequence[Value], guesses: Sequence[Row], meanings: Mapping[str, str], key: str
) -> dict[str, str]:
    """One field per value; returns meaning by the key of each."""
    chosen = {}
    for row in _rows_of(values):
        for value, place in zip(row, st.columns(_PER_ROW), strict=False):
            with place:
                now = words.plain(value.meaning)
                options = list(dict.fromkeys((*meanings, now)))
                meaning = st.selectbox(
                    words.printed_value(value.printed, value.example),
                    options,
                    index=options.index(now),
                    format_func=words.meaning_name,
                    key=f"{key}_{value.key}",
                )
                basic.note(words.guess_note(_guess(value, guesses)))
                spelt = words.spelt(str(meaning), value.example)
                chosen[value.key] = value.meaning if words.plain(value.meaning) == meaning else spelt
    return chosen


def _rows_of(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """The items, as many as stand side by side at a time."""
    return (items[at : at + _PER_ROW] for at in range(0, len(items), _PER_ROW))


def _guess(value: Value, guesses: Sequence[Row]) -> Row | None:
    """The row of `inferred_columns` about a value."""
    column = value.meaning.partition(":")[0]
    for row in guesses:
        printed = re.sub(r"\{[^{}]*\}", "…", str(row["field"]))
        if row["column_name"] == column or (column == correct_dialect.UNREAD and printed.strip() == value.printed):
            return row
    return None


def _draw_folder(form: Form, key: str) -> str:
    """The folder that the constants hold for, "" for all logs."""
    stated = [one for one in correct_dialect.folders_of(form.text) if one]
    options = list(dict.fromkeys([*stated, *([form.folder] if form.folder else []), ALL_LOGS]))
    picked = st.selectbox("They hold for the logs in", options, key=f"{key}_folder", width=520)
    return "" if picked == ALL_LOGS else str(picked)


def _draw_constants(form: Form, folder: str, key: str) -> dict[str, str | int]:
    """Constants by column, those that are left empty left out."""
    known = correct_dialect.constants_of(form.text, folder)
    found: dict[str, str | int] = {}
    for row in _rows_of(list(words.CONSTANTS)):
        for name, place in zip(row, st.columns(_PER_ROW), strict=False):
            field = f"{key}_{folder}_{name}"
            with place:
                if name in _TEXT_CONSTANTS:
                    value: str | int | None = st.text_input(
                        words.CONSTANTS[name], str(known.get(name, "")), key=field, placeholder="not stated"
                    )
                else:
                    before = known.get(name)
                    value = st.number_input(
                        words.CONSTANTS[name],
                        1,
                        None,
                        before if isinstance(before, int) else None,
                        step=1,
                        key=field,
                        placeholder="not stated",
                    )
                if value:
                    found[name] = value.strip() if isinstance(value, str) else int(value)
    return {**{name: value for name, value in known.items() if name not in words.CONSTANTS}, **found}


def _draw_name(form: Form, taken: Sequence[str], key: str) -> str:
    if form.kept_as:
        basic.note(f"Kept as **{form.kept_as}**; saving replaces it.")
        return form.kept_as
    return st.text_input(
        "Name of the trainer, as its runs' framework", proposed_name(form, taken), key=f"{key}_name", width=360
    ).strip()


def _draw_end(form: Form, text: str, name: str, key: str) -> None:
    """Buttons, what became of the last one, and the file."""
    may_keep = editing.may_keep()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if may_keep:
            st.button("Save", type="primary", key=f"{key}_save", on_click=_keep, args=(form, text))
            st.button("Try it on the logs", key=f"{key}_try", on_click=_try, args=(form, text))
        st.download_button(
            f"Download {name}.toml", text, f"{name}.toml", "application/toml", key=f"{key}_file", on_click="ignore"
        )
    outcome: _Outcome | None = st.session_state.get(_OUTCOME)
    if outcome is not None and outcome.text == text:
        _draw_outcome(outcome, form)
    if not may_keep:
        where = form.folder or (form.logs[0] if form.logs else "PATH")
        basic.note(texts.by_command(name, where, published.named_home()))
    with st.expander("The dialect file"):
        st.code(text, language="toml", wrap_lines=True)


def _draw_outcome(outcome: _Outcome, form: Form) -> None:
    if outcome.error:
        basic.problem(outcome.error)
    if outcome.kept_at:
        command = f"sweepscope ingest {shlex.quote(form.folder or 'PATH')}{published.named_home()}"
        basic.note(texts.kept(outcome.kept_at, len(form.logs), command))
    if outcome.trials:
        rows = [(one.path, words.trial_line(one.steps, one.values, one.refusal)) for one in outcome.trials]
        tables.table(pl.DataFrame(rows, schema=["log", "trial"], orient="row"), wide=("log", "trial"))


def _try(form: Form, text: str) -> None:
    try:
        outcome = _Outcome(text, trials=tuple(correct_dialect.tried(text, form.logs)))
    except SweepscopeError as error:
        outcome = _Outcome(text, error=str(error))
    st.session_state[_OUTCOME] = outcome


def _keep(form: Form, text: str) -> None:
    """Try the file, and keep it in the home. The page draws what became of it."""
    if not editing.may_keep():
        return
    try:
        trials = correct_dialect.tried(text, form.logs)
        path = correct_dialect.keep(
            published.default_home(), text, form.logs, given="corrected on Data health", replaces=form.kept_as
        )
        outcome = _Outcome(text, kept_at=str(path), trials=tuple(trials))
    except SweepscopeError as error:
        outcome = _Outcome(text, error=str(error))
    st.session_state[_OUTCOME] = outcome


def _draw_columns(columns: pl.DataFrame) -> None:
    named = columns.with_columns(
        column_name=pl.Series([texts.column_name(name) for name in columns["column_name"]], dtype=pl.String)
    )
    tables.table(
        named,
        ("column_name", "field", "printed_unit", "is_read", "confidence", "grounds", "line_no", "example"),
        wide=("example",),
    )
