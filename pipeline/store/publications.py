"""When which release was published and how long that took: one small file beside the published versions."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime

from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.store.durable_files import write_over
from sweepscope.pipeline.store.home import Home

_LOG = logging.getLogger(__name__)

KEPT = 200
"""Publications that are kept, oldest dropped: enough for a day of a busy home."""


@dataclass(frozen=True)
class Publication:
    """One published version: of which release, when (UTC), and seconds from the start to readers seeing it."""

    version: int
    release: int
    published_at: datetime
    seconds: float


def publications(home: Home) -> list[Publication]:
    """The last ones, oldest first; none before the first, and where the file cannot be read: nothing depends on it."""
    try:
        return list(_parsed(json.loads(home.publications.read_text(encoding="utf-8"))))
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _parsed(rows: list[dict[str, object]]) -> Iterator[Publication]:
    for row in rows:
        at = datetime.fromisoformat(str(row["published_at"]))
        yield Publication(int(str(row["version"])), int(str(row["release"])), at, float(str(row["seconds"])))


def record(home: Home, publication: Publication) -> None:
    """Keep one more; the publisher holds the store's lock. What was published stands where this cannot be written."""
    kept = [*publications(home), publication][-KEPT:]
    try:
        write_over(home.publications, json.dumps([asdict(one) for one in kept], default=str))
    except OSError as error:
        event(_LOG, logging.WARNING, "publication_not_recorded", version=publication.version, reason=error)
