"""Which news are alerts: those that were not sent yet, in one message for each kind.

Pure: news and what is remembered in, messages and what to remember out. The first time that a home has receivers, what
its store holds already is remembered and not sent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sweepscope.pipeline.operations.news import News, Row, Share, leader_key
from sweepscope.pipeline.operations.settings import Alerts, Kind

LISTED = 10
"""Items that a message names; the rest are counted."""

MIN_REJECTS = 10
"""Rejects of a parser below which a share says nothing."""

_FORGOTTEN_AFTER = timedelta(days=90)


@dataclass(frozen=True)
class Message:
    """One alert: what happened, in a title, and in a line for each item with the run that shows it, if any."""

    kind: Kind | str
    title: str
    items: tuple[tuple[str, str | None], ...] = ()
    more: int = 0


@dataclass(frozen=True)
class Memory:
    """What was sent.

    Attributes:
        seen: keys of hangs and regressions, and when the store last had them.
        leaders: by cell, who led it.
        rejects: by parser, the share that rising ones are measured against.
        version: of the store that was looked at last.
        newest_input_s: last write to the newest file that it shows.
        silent_since_s: the newest input of which it was said that nothing came after it.
    """

    seen: Mapping[str, datetime] = field(default_factory=dict)
    leaders: Mapping[str, str] = field(default_factory=dict)
    rejects: Mapping[str, float] = field(default_factory=dict)
    version: int = 0
    newest_input_s: float | None = None
    silent_since_s: float | None = None


def assess(news: News, memory: Memory | None, settings: Alerts, now: datetime) -> tuple[list[Message], Memory]:
    """Messages on what a version of the store shows, and what to remember. `memory`: None the first time."""
    known = memory or Memory()
    hangs = [row for key, row in news.hangs.items() if key not in known.seen]
    regressions = [
        row
        for key, row in news.regressions.items()
        if key not in known.seen and row["change"] <= -settings.regression_percent / 100
    ]
    leaders = [
        row
        for cell, row in news.leaders.items()
        if known.leaders.get(cell, leader_key(row)) != leader_key(row) and not row["is_tie"]
    ]
    risen = {
        parser: share
        for parser, share in news.rejects.items()
        if share.rejected >= MIN_REJECTS
        and share.value - known.rejects.get(parser, 0.0) >= settings.rejects_percent / 100
    }
    messages = [
        *_message("hang", "hung", "run", [(_hang(row), row["run_id"]) for row in hangs]),
        *_message("regression", "slower in a new version", "layout", [(_slower(r), r["run_id"]) for r in regressions]),
        *_message("new_best", "with a new fastest layout", "cell", [(_leader(row), row["run_id"]) for row in leaders]),
        *_message("rejects_rising", "with more rejects", "parser", [(_risen(*p), None) for p in risen.items()]),
    ]
    return [] if memory is None else messages, _remembered(news, memory, risen, settings, now)


def assess_silence(memory: Memory, settings: Alerts, now: datetime) -> tuple[list[Message], Memory]:
    """A message where nothing has been written for too long, once for each silence, and what to remember."""
    newest = memory.newest_input_s
    if newest is None or newest == memory.silent_since_s:
        return [], memory
    hours = (now.timestamp() - newest) / 3600
    if hours < settings.no_data_hours:
        return [], memory
    at = datetime.fromtimestamp(newest, UTC)
    text = f"The newest file that was read was last written to at {at:%Y-%m-%d %H:%M} UTC."
    message = Message("no_data", f"No new data for {hours:,.0f} hours", ((text, None),))
    return [message], replace(memory, silent_since_s=newest)


def _remembered(news: News, memory: Memory | None, risen: Collection[str], settings: Alerts, now: datetime) -> Memory:
    is_first, known = memory is None, memory or Memory()
    limit = now - _FORGOTTEN_AFTER
    too_small = {key for key, row in news.regressions.items() if row["change"] > -settings.regression_percent / 100}
    seen = {key: at for key, at in known.seen.items() if at > limit}
    seen |= dict.fromkeys([key for key in (*news.hangs, *news.regressions) if key not in too_small], now)
    # A tie decides nothing: the leader of before stays, so that a later clear lead over it is news.
    leaders = dict(known.leaders) | {
        cell: leader_key(row) for cell, row in news.leaders.items() if not row["is_tie"] or cell not in known.leaders
    }
    rejects = {
        parser: share.value if parser in risen or is_first else min(share.value, known.rejects.get(parser, 0.0))
        for parser, share in news.rejects.items()
    }
    return Memory(seen, leaders, rejects, news.version, news.newest_input_s, known.silent_since_s)


def _message(kind: Kind, what: str, of: str, items: Sequence[tuple[str, str | None]]) -> list[Message]:
    """At most one, of all items.

    >>> _message("hang", "hung", "run", [("8B", "a")])[0].title
    '1 run hung'
    """
    count = len(items)
    title = f"{count:,} {of}{'' if count == 1 else 's'} {what}"
    return [Message(kind, title, tuple(items[:LISTED]), max(count - LISTED, 0))] if items else []


def _hang(row: Row) -> str:
    suspect = f"; suspect: rank {row['suspect']}" if row["suspect"] else ""
    evidence = f": {row['status_evidence']}" if row["status_evidence"] else ""
    return f"{_where(row)}{suspect}{evidence} ({row['source_path']})"


def _slower(row: Row) -> str:
    names = ("framework_version", "torch_version", "nccl_version")
    changed = [
        f"{name.removesuffix('_version')} {row[f'{name}_before'] or '?'} to {row[name] or '?'}"
        for name in names
        if row[name] != row[f"{name}_before"]
    ]
    noise = f" (noise {row['noise']:.1%})" if row["noise"] is not None else ""
    return f"{_where(row)}: {-row['change']:.1%} slower{noise} from {', '.join(changed) or 'one version to the next'}"


def _leader(row: Row) -> str:
    ahead = f", {row['margin']:.1%} ahead" if row["margin"] is not None else ""
    mfu = f", MFU {row['mfu']:.1%}" if row["mfu"] is not None else ""
    return f"{_where(row)}: {row['tokens_per_s_per_gpu']:,.0f} tokens/s/GPU{mfu}{ahead}"


def _risen(parser: str, share: Share) -> str:
    return f"{parser}: {share.rejected:,} of {share.offered:,} lines and rows rejected ({share.value:.1%})"


def _where(row: Mapping[str, Any]) -> str:
    parts = [row["model"], row["layout"], _size(row)]
    return ", ".join(str(part) for part in parts if part) or "unknown layout"


def _size(row: Mapping[str, Any]) -> str | None:
    count = row["num_gpus"]
    return None if count is None else f"{count:,} x {row['accelerator'] or 'GPU'}"
