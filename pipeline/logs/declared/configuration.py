"""Settings from a configuration file beside the log, as a dialect file describes it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from sweepscope.pipeline.io.yaml_text import safe_loader
from sweepscope.pipeline.logs.declared.rules import File

_MAX_FILE_CHARS = 4 << 20


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
    known = {name: str(value) for name, value in values.items() if isinstance(value, str | int | float | bool)}
    spelt = {file.columns[key]: words for key, words in file.words.items()}
    translated = {name: spelt[name].get(value) if name in spelt else value for name, value in known.items()}
    return {name: value for name, value in translated.items() if value is not None}


def _load(text: str, form: str) -> Any:
    if form == "json":
        return json.loads(text)
    if form == "toml":
        return tomllib.loads(text)
    import yaml

    try:
        return yaml.load(text, Loader=safe_loader(text))  # noqa: S506 -- both of them are safe
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {str(error).splitlines()[0]}") from error


def _at(data: Any, path: Iterable[str]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data
