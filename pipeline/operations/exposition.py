"""Measures as text that Prometheus reads (exposition format 0.0.4), and as the JSON of a health check.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from sweepscope.pipeline.operations.measures import Measures

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_Value = float | Mapping[str, int] | None
_Metric = tuple[str, str, str, _Value]
"""Name, help, label (empty without one) and value, or value by label."""


def health(measures: Measures) -> dict[str, str]:
    """The answer of `/healthz`."""
    status = "ok" if measures.is_healthy else "unhealthy"
    return {"status": status, "store": measures.store, "watcher": measures.watcher}


def exposition(measures: Measures) -> str:
    """The answer of `/metrics`. What is unknown has no sample, rather than 0."""
    lines = []
    for name, meaning, label, value in _metrics(measures):
        samples = list(_samples(f"sweepscope_{name}", label, value))
        if samples:
            lines += [f"# HELP sweepscope_{name} {meaning}", f"# TYPE sweepscope_{name} gauge", *samples]
    return "\n".join(lines) + "\n"


def _samples(name: str, label: str, value: _Value) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, count in sorted(value.items()):
            yield f'{name}{{{label}="{_escaped(key)}"}} {count}'
    elif value is not None:
        yield f"{name} {value:.17g}"


def _escaped(text: str) -> str:
    r"""A label's value.

    >>> _escaped('a"b\n')
    'a\\"b\\n'
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _metrics(found: Measures) -> Iterator[_Metric]:
    contents, beat = found.contents, found.heartbeat
    yield "healthy", "1 where pages can be served, else 0.", "", float(found.is_healthy)
    yield (
        "watcher_up",
        "1 where the watcher's last tick is less than five minutes old, else 0.",
        "",
        float(found.watcher == "alive"),
    )
    yield (
        "watcher_last_tick_timestamp_seconds",
        "When the watcher last looked for new files.",
        "",
        (None if beat is None else beat.at.timestamp()),
    )
    yield (
        "files_waiting",
        "Files that the watcher's last tick found new or changed.",
        "",
        (None if beat is None else float(beat.files_waiting)),
    )
    yield (
        "ingest_runs_unfinished",
        "Runs of the ingest queued or at work at the watcher's last tick.",
        "",
        (None if beat is None else float(beat.runs_unfinished)),
    )
    yield "lake_release", "Number of the newest release of the lake.", "", _float(found.lake_release)
    yield "publish_seconds", "How long publishing the version on show took.", "", found.publish_s
    yield "ingest_lag_seconds", "From the last write to the newest file until readers saw it.", "", found.lag_s
    yield "store_bytes", "Size of the published store.", "", _float(found.store_bytes)
    if contents is None:
        return
    info = contents.info
    yield "store_version", "Number of the published store.", "", float(info.version)
    yield "store_release", "Release of the lake that the published store shows.", "", float(info.release)
    yield "store_published_timestamp_seconds", "When the store was published.", "", _epoch_s(info.published_at)
    yield "newest_input_timestamp_seconds", "Last write to the newest file read.", "", contents.newest_input_s
    yield "rows", "Rows of the store by table.", "table", contents.rows
    yield "runs", "Run attempts of your own logs by status, copies left out.", "status", contents.runs
    yield "files", "Files of the ledger by status.", "status", contents.files
    yield "rejects", "Lines and rows that did not parse.", "", float(contents.rows.get("rejects", 0))
    yield "secrets_hidden", "Texts in which a credential was hidden.", "", float(contents.secrets_hidden)


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _epoch_s(at: datetime) -> float:
    return at.replace(tzinfo=UTC).timestamp()
