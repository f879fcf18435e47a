"""The published store as the pages see it: one read-only connection per version, pinned for the visit.

A visit keeps the version it began with, so nothing on screen changes by itself; `newer_version` is a
later one, which the shell offers. Connections are cached by path, because each version is a file of its own.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Thread

import duckdb
import streamlit as st

from sweepscope.dashboard.queries.reader import Answers, Reader
from sweepscope.pipeline.errors import InputError, StoreError
from sweepscope.pipeline.estimate.calibration.own_runs import with_own
from sweepscope.pipeline.estimate.physics.profile import Profile, is_current, load_profiles, read_profile
from sweepscope.pipeline.estimate.rows.asking import ChooseProfile
from sweepscope.pipeline.reference.rules import Book, load_rules, rules_of
from sweepscope.pipeline.store import published

_PINNED = "store_path"
_newest: dict[str, Answers] = {}
"""What was asked of the version that was opened last, by folder of the store."""


@dataclass(frozen=True)
class Store:
    """One opened version. `con` belongs to this script run and keeps answers; `published_at` is in UTC."""

    path: Path
    version: int
    published_at: datetime
    con: Reader

    def for_thread(self) -> Store:
        """The same version for another thread: a DuckDB connection may not be used by two at once."""
        return replace(self, con=Reader(self.con.cursor(), self.con.answers))

    def has(self, *names: str) -> bool:
        """Whether the store has all of these tables and views: one that was published earlier may lack later ones."""
        found = self.con.frame("SELECT table_name FROM information_schema.tables", {})
        return set(found["table_name"]).issuperset(names)


@st.cache_resource(max_entries=4, show_spinner=False)
def _opened(path: str) -> tuple[duckdb.DuckDBPyConnection, Answers]:
    connection, answers = published.connect(path), Answers()
    home = str(Path(path).parent)
    before = _newest.get(home)
    _newest[home] = answers
    if before is not None:
        reader = Reader(connection.cursor(), answers)
        Thread(target=reader.ask_again, args=(before,), name="ask_again", daemon=True).start()
    return connection, answers


def open_store() -> Store:
    """The version this visit reads.

    Raises:
        SweepscopeError: nothing was published yet, or what was cannot be opened; the message says what to do.
    """
    pinned = st.session_state.get(_PINNED)
    # The pinned file may be gone when several versions were published since; then the latest one counts.
    store = _store(Path(pinned)) if pinned and Path(pinned).exists() else latest_store()
    st.session_state[_PINNED] = str(store.path)
    return store


def latest_store() -> Store:
    """The newest version, whichever the visit reads: for what is shown as of now. Raises as `open_store` does."""
    return _store(published.current(published.default_home()))


def _store(path: Path) -> Store:
    # A cursor per run: a DuckDB connection may not be used by two threads at once.
    connection, answers = _opened(str(path))
    con = connection.cursor()
    info = published.store_info(con)
    return Store(path, info.version, info.published_at, Reader(con, answers))


def newer_version(store: Store) -> int | None:
    """Number of a version published after the one on screen, or None."""
    try:
        latest = published.current(published.default_home())
    except StoreError:
        return None
    if latest == store.path:
        return None
    with suppress(StoreError):  # the version after it may have taken its place
        _opened(str(latest))  # so that it has its answers when the reader goes on to it
    return published.version_of(latest)


def adopt_latest() -> None:
    """Lets the next run open the latest version."""
    st.session_state.pop(_PINNED, None)


def own_constants() -> ChooseProfile:
    """Chooses the estimator's constants as the command line does: fitted on this home's runs where they were."""
    return with_own(_calibration())


def known_profiles() -> dict[str, Profile]:
    """Constants by name: the bundled ones, and over them those that were fitted on this home's runs."""
    bundled = load_profiles()
    fitted = sorted(_calibration().glob("*.toml"))
    return {**bundled, **{path.stem: read_profile(path, base=bundled["default"]) for path in fitted}}


def rule_book() -> tuple[Book, str]:
    """The rules with those of this home, and why these could not be read ("" where they could)."""
    try:
        return rules_of(published.default_home()), ""
    except InputError as error:
        return load_rules(), str(error)


def fitted_here() -> list[Profile]:
    """Constants that were fitted on this home's runs, by name."""
    bundled = load_profiles()["default"]
    return [read_profile(path, base=bundled) for path in sorted(_calibration().glob("*.toml")) if is_current(path)]


def own_frameworks(generation: str) -> list[str]:
    """Frameworks that have constants of their own on a generation of cards, bundled or fitted in this home."""
    prefix = f"{generation}-"
    return sorted(name.removeprefix(prefix) for name in known_profiles() if name.startswith(prefix))


def _calibration() -> Path:
    return published.default_home() / "calibration"
