"""sweepscope: the logs of LLM parallelism sweeps as a SQL store and a dashboard.

In a notebook, `import sweepscope as ss` offers `open`, `estimate`, `search` and `plot` (docs/notebooks.md). They are
imported at their first use, because the command line starts from here, too.

In a checkout the packages below are links to the folders of the same names, so that they have one import name here and
in an installed wheel, and none that anybody else's `data` or `pipeline` could have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweepscope import plot as plot
    from sweepscope.api import Store as Store
    from sweepscope.api import estimate as estimate
    from sweepscope.api import open_store as open
    from sweepscope.api import search as search

__all__ = ["Store", "estimate", "open", "plot", "search"]

_OF_API = {"Store": "Store", "estimate": "estimate", "open": "open_store", "search": "search"}


def __getattr__(name: str) -> object:
    """A name of the interface for notebooks, imported now. Raises AttributeError for any other."""
    from importlib import import_module

    if name == "plot":
        return import_module("sweepscope.plot")
    if name in _OF_API:
        return getattr(import_module("sweepscope.api"), _OF_API[name])
    raise AttributeError(f"module 'sweepscope' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
