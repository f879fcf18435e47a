"""Columns of texts without credentials: one search in Rust picks the few texts that `secrets.hide` has to look at."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from sweepscope.pipeline.text.secret_names import CORE, MARK
from sweepscope.pipeline.text.secrets import PREFIXES, hide, hide_value

_SUSPECT_FORMAT = rf"{PREFIXES}|-----BEGIN|==|Q~|:AA|:(?://|\\/\\/)[^/\s:@]*(?:[^/\s]|:[^\s@]+)@|[A-Za-z0-9+/]{{60}}"
_NAME = CORE.replace("|key", "|[a-z][_.-]?key")  # `key` alone is no name of a credential
_SEPARATOR = r"""(?:['"\\\])]*\s*(?:[=:|>]|->|%3|\.\.\.+)|\\?['"]\s*,)"""
_VALUE = r"""[>=\s'"\\(bur]*[0-9.,-]*[!#-&*+/:-@A-Z^-`a-z~]"""  # more than a number
_SUSPECT_NAME = (
    rf"(?i-u:(?:pass(?:w(?:or)?d|phrase)?|pwd|secret|credentials?){_SEPARATOR}|(?:{_NAME}){_SEPARATOR}{_VALUE}|"
    rf"-[a-z0-9_.-]*(?:{_NAME})\s|(?:key|login)[ -~]*[0-9a-f]{{40}}|"
    r"bearer\s|basic\s|cookie|password\s|(?:token|secret)\s+['\"]?[a-z0-9]{16}|login\s|curl\s|wget\s|sshpass\s)|[│┃]"
)
"""In Rust's syntax: one of the two holds of every text that `hide` changes."""


def hide_series(texts: pl.Series) -> pl.Series:
    """Texts without credentials; the same series where there are none."""
    if texts.null_count() == texts.len():
        return texts
    distinct = texts.unique()  # names, and the lines of restarts, repeat; hashing a text is cheaper than searching it
    is_suspect = distinct.str.contains(_SUSPECT_FORMAT) | distinct.str.contains(_SUSPECT_NAME)
    if not is_suspect.any():
        return texts
    suspects = distinct.filter(is_suspect)
    hidden = suspects.map_elements(hide, return_dtype=pl.String)
    is_changed = suspects != hidden
    if not is_changed.any():
        return texts
    return texts.replace(suspects.filter(is_changed), hidden.filter(is_changed))


def hide_frame(frame: pl.DataFrame, *, besides: Collection[str] = ()) -> pl.DataFrame:
    """`frame` without credentials in its texts; `value` is judged by the `name` in its row, too.

    Args:
        frame: any rows.
        besides: columns that stay as they are: paths, by which files are found again.
    """
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String and name not in besides]
    changed = []
    for column in frame.select(texts).iter_columns():
        hidden = hide_series(column)
        if hidden is not column:
            changed.append(hidden)
    if {"name", "value"} <= set(texts):
        changed = [column for column in changed if column.name != "value"] + [_hide_values(frame)]
    return frame.with_columns(changed) if changed else frame


def hidden_in(texts: pl.Series) -> pl.Series:
    """Whether something was hidden in each text."""
    return texts.str.contains(MARK, literal=True).fill_null(value=False)


def shortened(text: pl.Expr, length: int) -> pl.Expr:
    """The first `length` characters of a text without its credentials: half of one would not be recognised."""
    return text.map_batches(lambda texts: hide_series(texts).str.slice(0, length), return_dtype=pl.String)


def _hide_values(frame: pl.DataFrame) -> pl.Series:
    is_suspect = frame["name"].str.contains(rf"(?i)(?:{CORE})$")
    hidden = hide_series(frame["value"])
    if not is_suspect.any():
        return hidden
    pairs = zip(frame["name"], hidden, is_suspect, strict=True)
    values = [hide_value(name, value) if suspect and value is not None else value for name, value, suspect in pairs]
    return pl.Series("value", values, pl.String)
