"""Loader of untrusted YAML: plain values only, as fast as its nesting allows."""

from __future__ import annotations

import yaml

_MOST_BRACKETS = 1_000
_LONGEST_LINE = 1_000


def safe_loader(text: str) -> type[yaml.SafeLoader]:
    """The loader for a text. libyaml's is ten times as fast, and ends the process where values nest deep.

    Values nest no deeper than there are brackets in all and columns in a line. The other loader raises RecursionError.

    >>> safe_loader("[" * 9_999).__name__
    'SafeLoader'
    """
    fast: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    columns = max(map(len, text.split("\n")))
    is_shallow = text.count("[") + text.count("{") <= _MOST_BRACKETS and columns <= _LONGEST_LINE
    return fast if is_shallow else yaml.SafeLoader
