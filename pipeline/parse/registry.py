"""The explicit list of dialects. A new format is one module and one line here; order breaks ties."""

from __future__ import annotations

from pipeline.parse import picotron
from pipeline.parse.protocol import Dialect

DIALECTS: tuple[Dialect, ...] = (picotron.DIALECT,)


def by_name(name: str) -> Dialect:
    """The dialect of that name. Raises KeyError for an unknown one."""
    return {dialect.name: dialect for dialect in DIALECTS}[name]
