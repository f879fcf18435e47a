"""The text of a dialect file from its tables."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

_MOST_ON_A_LINE = 3


def written(data: Mapping[str, Any]) -> str:
    """Tables as TOML: plain values first, then each table of an array under a heading of its own.

    >>> print(written({"name": "acme", "step": [{"parts": ["it {step}"]}]}), end="")
    name = "acme"
    <BLANKLINE>
    [[step]]
    parts = ["it {step}"]
    """
    plain = {key: value for key, value in data.items() if not _is_array_of_tables(value)}
    blocks = ["\n".join(f"{_key(key)} = {toml_value(value)}" for key, value in plain.items())] if plain else []
    for key, tables in data.items():
        if _is_array_of_tables(tables):
            blocks += [
                "\n".join(
                    [f"[[{_key(key)}]]", *(f"{_key(name)} = {toml_value(value)}" for name, value in table.items())]
                )
                for table in tables
            ]
    return "\n\n".join(blocks) + "\n"


def bare(text: str) -> str:
    """The dialect file without comments, in one form: files with the same rules are the same text."""
    return written(tomllib.loads(text))


def toml_value(value: Any) -> str:
    """One value as TOML writes it.

    >>> toml_value(["a", 1]), toml_value({"b c": True})
    ('["a", 1]', '{ "b c" = true }')
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_value(str(key))} = {toml_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, Sequence):
        parts = [toml_value(one) for one in value]
        if len(parts) > _MOST_ON_A_LINE:
            return "[\n" + "".join(f"  {part},\n" for part in parts) + "]"
        return f"[{', '.join(parts)}]"
    return str(value)


def _is_array_of_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else toml_value(key)
