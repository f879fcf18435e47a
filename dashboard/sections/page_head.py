"""Head of a page on the runs of one origin: whose rows they are, which sweep, and the way to the others.

For pages that do not look at one slice of the grid: memory, network, failures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.queries.overview import lacking
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.queries.slices import runs_of
from sweepscope.dashboard.selection.options import listed
from sweepscope.dashboard.text import best as grid_texts
from sweepscope.dashboard.text import options as option_texts
from sweepscope.dashboard.text import origins as texts
from sweepscope.dashboard.text import overview as overview_texts
from sweepscope.dashboard.widgets import basic, choices

_ALL = "*"


def regions() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Containers of the head and of the controls below it; the head depends on what the controls chose."""
    return st.container(), st.container(horizontal=True, vertical_alignment="bottom", gap="small")


def nothing(title: str, answer: str, ways: Sequence[str] = ()) -> None:
    """A page of which the store holds nothing: what is missing, and the ways to get it."""
    basic.head(title, answer)
    basic.notes(ways)


def no_grid(title: str, con: Reader) -> None:
    """A page on a grid of which the store holds none: what a run needs for one, which of it one's own runs lack."""
    nothing(title, grid_texts.NO_GRID)
    if lacks := overview_texts.lacking(lacking("measured").run(con).row(0, named=True)):
        basic.note(lacks)
    own_runs_links()


def own_runs_links() -> None:
    """Ways from runs that are in no grid: to all of them, and to where is stated what they lack."""
    links = [basic.link("All of your runs", "runs?origins=measured"), basic.link("Data health", "health")]
    st.html(f'<p class="ss-plain ss-way">{" · ".join(links)}</p>')


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


def say_instead(con: Reader, shown: str | None, wanted: str | None, lack: str) -> None:
    """Says, where a page shows the runs of others, what one's own runs lack for it.

    Args:
        con: the store.
        shown: origin on screen.
        wanted: origin that the address asks for; what was asked for needs no explanation.
        lack: why own runs are not on screen, to follow their number: "log no GPU memory".
    """
    if shown in (None, "measured", wanted):
        return
    own = int(runs_of("measured").run(con)["runs"].item())
    if own:
        basic.note(texts.instead(own, lack, str(shown)))


def say_no_own_grid(view: View) -> None:
    """Says, on a page that shows a grid of others, why it shows none of one's own."""
    has_grid = "measured" in view.slices["origin"].to_list()
    lack = texts.NONE_COMPLETED if has_grid else texts.NOT_IN_A_GRID
    say_instead(view.store.con, view.chosen.origin if view.chosen else None, view.filters.origin, lack)


def choose_sweep(sizes: Mapping[str, int], noun: str, *, default: str | None = None, width: int = 300) -> str | None:
    """A selectbox of one sweep, or all (None). `sizes` is how many of the `noun` each holds, most first."""
    options = [_ALL, *listed(sizes, default, st.query_params.get("sweep"))]
    wanted = choices.select(
        "Sweep",
        "sweep",
        options,
        default or _ALL,
        shown=lambda name: f"{name} · {numbers.count(sizes[name], noun)}" if name in sizes else "all sweeps",
        width=width,
        help=option_texts.left_out(options, sizes, noun="sweep", most=f"{noun}s", parameter="sweep"),
    )
    return None if wanted == _ALL else wanted
