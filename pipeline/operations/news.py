"""What a published store holds that may be worth an alert: hangs, regressions, leaders of cells, rejects, and so on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from sweepscope.pipeline.store.published import connect, version_of

_CELL = "origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator"

_HANGS = """
SELECT r.run_id, r.model, r.layout, r.num_nodes, r.num_gpus, r.accelerator, r.source_path, r.status_evidence,
  (SELECT any_value(h.suspect ORDER BY h.source_path, h.line_no) FROM nccl_hangs AS h
   WHERE h.source_path = r.source_path AND h.is_first) AS suspect
FROM runs AS r
WHERE r.status = 'hang' AND r.origin = 'measured' AND r.duplicate_of IS NULL
ORDER BY coalesce(r.ended_at, r.started_at) DESC NULLS LAST, r.run_id"""

_REGRESSIONS = """
SELECT run_id, model, layout, num_nodes, num_gpus, accelerator, seq_len, gbs_tokens, framework, cluster, change, noise,
  framework_version, torch_version, nccl_version, framework_version_before, torch_version_before, nccl_version_before
FROM version_changes
WHERE origin = 'measured' AND change_verdict = 'slower'
ORDER BY change, run_id"""

_LEADERS = f"""
SELECT {_CELL}, run_id, layout, framework, variant, tokens_per_s_per_gpu, mfu, margin, is_tie
FROM best_configs
WHERE origin = 'measured'
ORDER BY {_CELL}"""

_REJECTS = """
SELECT coalesce(parser, 'no parser') AS parser, sum(lines_rejected)::BIGINT AS rejected,
  sum(coalesce(rows_parsed, 0) + coalesce(lines_rejected, 0))::BIGINT AS offered
FROM files
WHERE kind <> 'published'
GROUP BY 1
HAVING offered > 0
ORDER BY 1"""

_NEWEST = "SELECT max(mtime) FROM files WHERE kind <> 'published' AND mtime > 0"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Share:
    """Rejected among offered lines and rows of one parser."""

    rejected: int
    offered: int

    @property
    def value(self) -> float:
        """A fraction."""
        return self.rejected / self.offered


@dataclass(frozen=True)
class News:
    """What one published version holds.

    Attributes:
        version: of the store; 0 before the first.
        hangs: by key, rows of `runs` that hung, with the suspect ranks.
        regressions: by key, rows of `version_changes` that are slower beyond noise.
        leaders: by cell, its row of `best_configs`.
        rejects: by parser.
        newest_input_s: last write to the newest file read, seconds since 1970.
    """

    version: int = 0
    hangs: Mapping[str, Row] = field(default_factory=dict)
    regressions: Mapping[str, Row] = field(default_factory=dict)
    leaders: Mapping[str, Row] = field(default_factory=dict)
    rejects: Mapping[str, Share] = field(default_factory=dict)
    newest_input_s: float | None = None


def read_news(path: Path) -> News:
    """The news of a published file. Raises StoreError, or duckdb.Error for a store that lacks what is asked."""
    connection = connect(path)
    try:
        rejects = {row["parser"]: Share(row["rejected"] or 0, row["offered"]) for row in _rows(connection, _REJECTS)}
        ((newest,),) = connection.execute(_NEWEST).fetchall()
        return News(
            version_of(path),
            {_key("hang", row["run_id"]): row for row in _rows(connection, _HANGS)},
            {_key("regression", *_change_of(row)): row for row in _rows(connection, _REGRESSIONS)},
            {_key("cell", *_cell_of(row)): row for row in _rows(connection, _LEADERS)},
            rejects,
            newest,
        )
    finally:
        connection.close()


def leader_key(row: Row) -> str:
    """What a leader is: its layout, variant and framework. Its runs may change as it is measured again."""
    return _key("leader", row["layout"], row["variant"], row["framework"])


def _cell_of(row: Row) -> list[object]:
    return [row[name] for name in _CELL.split(", ")]


def _change_of(row: Row) -> list[object]:
    """A regression is that of a layout between two versions; which run shows it may change."""
    return [value for name, value in row.items() if name not in ("run_id", "change", "noise")]


def _key(kind: str, *parts: object) -> str:
    text = "\x1f".join(map(str, parts))
    return f"{kind}:{hashlib.blake2b(text.encode(), digest_size=10).hexdigest()}"


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    result = connection.execute(query)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
