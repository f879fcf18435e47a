"""Questions to start from on the SQL page. Each runs on any store, in the sandbox, and is meant to be changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sweepscope.schemas.vocab import HEALTH_FINDINGS


@dataclass(frozen=True)
class Canned:
    """A question and the query that answers it; `key` is in the address."""

    key: str
    question: str
    sql: str


def _read(text: str) -> tuple[Canned, ...]:
    """Queries with a blank line between them, each after a comment with its key and its question."""
    kinds = ", ".join(f"'{kind}'" for kind in HEALTH_FINDINGS)
    found = []
    for block in text.replace("{health_findings}", kinds).strip().split("\n\n"):
        head, sql = block.split("\n", 1)
        key, question = head.removeprefix("-- ").split(": ", 1)
        found.append(Canned(key, question, sql))
    return tuple(found)


CANNED = _read(Path(__file__).with_name("canned.sql").read_text(encoding="utf-8"))
