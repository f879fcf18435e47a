"""TOML documents of sections: the standard library reads TOML, and does not write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweepscope.pipeline.logs.declared.toml_writer import toml_value


def toml_text(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of a document of sections of plain values, in their order; `tomllib` reads back what was given.

    >>> print(toml_text({"training": {"steps": 20, "dataset": "c4"}}), end="")
    [training]
    steps = 20
    dataset = "c4"
    """
    return "\n".join(
        "".join([f"[{name}]\n", *(f"{key} = {toml_value(value)}\n" for key, value in section.items())])
        for name, section in sections.items()
    )
