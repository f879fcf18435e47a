"""Head of a page on the runs of one origin: whose rows they are, which sweep, and the way to the others.

For pages that do not look at one slice of the grid: memory, network, failures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.widgets import basic, choices

_ALL = "*"


def regions() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Containers of the head and of the controls below it; the head depends on what the controls chose."""
    return st.container(), st.container(horizontal=True, vertical_alignment="bottom", gap="small")


def nothing(title: str, answer: str, ways: Sequence[str] = ()) -> None:
    """A page of which the store holds nothing: what is missing, and the ways to get it."""
    basic.head(title, answer)
    basic.notes(ways)


def origin(offered: Sequence[str], *wanted: str | None) -> str:
    """The first wanted origin that there is, else the first that the store offers.

    >>> origin(["measured", "simulated"], None, "simulated")
    'simulated'
    >>> origin(["measured", "simulated"], "published")
    'measured'
    """
    return next((name for name in wanted if name is not None and name in offered), offered[0])


def other_origins(offered: Sequence[str], shown: str) -> list[tuple[str, str]]:
    """Links to the same page for the other origins, which never mix.

    >>> other_origins(["measured", "simulated"], "measured")
    [('simulated results', '?origin=simulated')]
    """
    return [(f"{name} results", f"?origin={name}") for name in offered if name != shown]


def choose_sweep(sizes: Mapping[str, int], noun: str, *, default: str | None = None, width: int = 300) -> str | None:
    """A selectbox of one sweep, or all (None). `sizes` is how many of the `noun` each holds."""
    options = [_ALL, *sizes]
    wanted = choices.select(
        "Sweep",
        "sweep",
        options,
        default or _ALL,
        shown=lambda name: f"{name} · {numbers.count(sizes[name], noun)}" if name in sizes else "all sweeps",
        width=width,
    )
    return None if wanted == _ALL else wanted
