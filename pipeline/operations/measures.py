"""What monitoring asks of a home: whether it works, and counts. They name no run, model, file or host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal

from sweepscope.pipeline.errors import NoStoreError, StoreError
from sweepscope.pipeline.operations.heartbeat import LATE_AFTER_S, Heartbeat, last_beat
from sweepscope.pipeline.store import release as releases
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.publications import publications
from sweepscope.pipeline.store.published import StoreInfo, connect, current, store_info
from sweepscope.schemas.registry import TABLES

StoreState = Literal["published", "empty", "damaged"]
WatcherState = Literal["alive", "late", "none"]


@dataclass(frozen=True)
class Contents:
    """Counts of one published version, which never change.

    Attributes:
        rows: by table.
        runs: that count, of your own logs, by status.
        files: by status.
        secrets_hidden: texts in which a credential was hidden.
        newest_input_s: modification time of the newest file read, seconds since 1970; None without one.
    """

    info: StoreInfo
    rows: Mapping[str, int]
    runs: Mapping[str, int]
    files: Mapping[str, int]
    secrets_hidden: int
    newest_input_s: float | None


@dataclass(frozen=True)
class Measures:
    """The state of a home at one moment; what is unknown is None."""

    now: datetime
    store: StoreState
    watcher: WatcherState
    contents: Contents | None = None
    store_bytes: int | None = None
    lake_release: int | None = None
    publish_s: float | None = None
    heartbeat: Heartbeat | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether pages can be served. A watcher that is late makes the dashboard no worse: it is not started anew."""
        return self.store != "damaged"

    @property
    def lag_s(self) -> float | None:
        """Seconds from the last write to the newest file until readers saw it; None where nothing was read."""
        if self.contents is None or self.contents.newest_input_s is None:
            return None
        published = self.contents.info.published_at.replace(tzinfo=UTC).timestamp()
        return max(published - self.contents.newest_input_s, 0.0)


def measure(home: Home, *, now: datetime | None = None) -> Measures:
    """The state of a home. Never raises for what is wrong with it: that is what it tells."""
    now = now or datetime.now(UTC)
    beat = last_beat(home)
    watcher: WatcherState = "none" if beat is None else "alive" if beat.age_s(now) < LATE_AFTER_S else "late"
    try:
        path = current(home.path)
        contents = _contents(path)
        size = path.stat().st_size
        newest = releases.numbers(home.releases)
    except NoStoreError:
        return Measures(now, "empty", watcher, heartbeat=beat)
    except (StoreError, OSError):
        return Measures(now, "damaged", watcher, heartbeat=beat)
    seconds = {one.version: one.seconds for one in publications(home)}
    return Measures(
        now,
        "published",
        watcher,
        contents,
        size,
        newest[-1] if newest else None,
        seconds.get(contents.info.version),
        beat,
    )


@lru_cache(maxsize=2)
def _contents(path: Path) -> Contents:
    """Counts of a published file. Raises StoreError."""
    connection = connect(path)
    try:
        info = store_info(connection)
        counted = {name: f'SELECT count(*) FROM "{name}"' for name in TABLES}
        rows = {name: connection.execute(query).fetchall()[0][0] for name, query in counted.items()}
        runs = connection.execute(
            "SELECT status, count(*) FROM runs WHERE duplicate_of IS NULL AND origin = 'measured' GROUP BY status"
        ).fetchall()
        files = connection.execute("SELECT status, count(*) FROM files GROUP BY status").fetchall()
        ((hidden, newest),) = connection.execute(
            "SELECT coalesce(sum(secrets_hidden), 0)::BIGINT, max(nullif(mtime, 0)) FROM files"
        ).fetchall()
    finally:
        connection.close()
    return Contents(info, rows, dict(runs), dict(files), hidden, newest)
