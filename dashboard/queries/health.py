"""What the store was made from: files, rejects, versions, counts."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.dashboard.queries.query import Query
from sweepscope.schemas.registry import TABLES
from sweepscope.schemas.tables.inference import DOUBTFUL_SPEED

REJECTS_SHOWN = 500

WANTED_FACTS = {
    "speed": "coalesce(step_time_s, tokens_per_s, tokens_per_s_per_gpu)",
    "batch": "gbs",
    "seq_len": "seq_len",
    "num_gpus": "num_gpus",
    "model": "coalesce(model, CAST(params AS VARCHAR))",
}
"""Facts without which a run cannot be ranked, and what in `runs` tells each."""


def files() -> Query:
    """One row per kind, status, reason (its own path taken out) and parser, with counts and bytes; trouble first.

    The example is the file with the most hidden credentials.
    """
    sql = """SELECT kind, status, replace(error, path, '…') AS error, parser, count(*) AS files,
  sum(bytes)::BIGINT AS bytes, sum(rows_parsed)::BIGINT AS rows_parsed, sum(lines_rejected)::BIGINT AS lines_rejected,
  nullif(sum(secrets_hidden), 0)::BIGINT AS secrets_hidden, arg_max(path, coalesce(secrets_hidden, 0)) AS example
FROM files
GROUP BY kind, status, replace(error, path, '…'), parser
ORDER BY status IN ('rejected', 'failed') DESC, lines_rejected DESC, files DESC, kind"""
    return Query(sql)


def file_list() -> Query:
    """Every file of the ledger, for the download."""
    return Query("SELECT *\nFROM files\nORDER BY status DESC, path")


# The value found, and how often, make each reason unique; what went wrong is the part before them.
_PLAIN_REASON = "regexp_replace(reason, '(, got .*)?( \\(\\d+ times\\))?$', '')"


def reject_reasons() -> Query:
    """One row per table, column and plain reason (without the value found), with rejects and files counted."""
    sql = f"""SELECT "table", "column", {_PLAIN_REASON} AS reason, count(*) AS rejects, count(DISTINCT file) AS files
FROM rejects
GROUP BY ALL
ORDER BY rejects DESC, "table", "column", reason"""
    return Query(sql)


def rejects(reason: str) -> Query:
    """Rejected lines with one plain reason, at most REJECTS_SHOWN, as in their files."""
    sql = f"""SELECT file, line_no, "table", "column", reason, raw
FROM rejects
WHERE {_PLAIN_REASON} = $reason
ORDER BY file, line_no
LIMIT {REJECTS_SHOWN}"""
    return Query(sql, {"reason": reason})


def all_rejects() -> Query:
    """Every reject, for the download."""
    return Query("SELECT *\nFROM rejects\nORDER BY file, line_no")


def inferred_logs() -> Query:
    """One row per file with runs read by inference: columns found, columns in doubt, which of WANTED_FACTS they lack.

    Files that only repeat runs of others, as the output of a job does, are left out.
    It `is_table` where each of its rows is a run; it is a log otherwise.
    `doubtful` columns are not read, or with low confidence; its runs are `is_unranked` where that is their speed.
    `dialect_text` has the rules by which its steps are read.
    """
    wanted = ",\n  ".join(f"any_value({columns}) IS NULL AS no_{name}" for name, columns in WANTED_FACTS.items())
    sql = f"""WITH logs AS (
  SELECT source_path, list(DISTINCT column_name ORDER BY column_name) FILTER (is_read) AS found,
  list(DISTINCT column_name ORDER BY column_name) FILTER (NOT is_read OR confidence = 'low') AS doubtful,
  arg_min(example, line_no) FILTER (column_name = 'step') AS example
FROM inferred_columns
GROUP BY source_path
), facts AS (
  SELECT source_path, {wanted},
  bool_or(quarantine_reason IS NOT DISTINCT FROM $doubtful) AS is_unranked
FROM runs
WHERE duplicate_of IS NULL
GROUP BY source_path
)
SELECT logs.*, facts.* EXCLUDE (source_path), dialect_text,
  EXISTS (FROM files WHERE path = source_path AND kind = 'bench_csv') AS is_table
FROM logs
JOIN facts USING (source_path)
LEFT JOIN inferred_dialects USING (source_path)
ORDER BY found IS NULL DESC, source_path"""
    return Query(sql, {"doubtful": DOUBTFUL_SPEED})


def logs_read_by(names: Sequence[str]) -> Query:
    """`source_path` and `parser` of the logs that one of the dialects has read."""
    sql = """SELECT path AS source_path, parser
FROM files
WHERE kind = 'log' AND list_contains($names, parser)
ORDER BY path"""
    return Query(sql, {"names": list(names)})


def inferred_columns(source_path: str) -> Query:
    """What one log was inferred to print, sure columns first."""
    sql = """SELECT column_name, field, printed_unit, confidence, is_read, grounds, line_no, example
FROM inferred_columns
WHERE source_path = $source_path
ORDER BY is_read DESC, column_name, field"""
    return Query(sql, {"source_path": source_path})


def origins() -> Query:
    """Run attempts that count per origin and status; `copies` of the origin are rows that tell of one of them again."""
    sql = """SELECT origin, status, counted AS runs, sum(repeated) OVER (PARTITION BY origin)::BIGINT AS copies
FROM (
  SELECT origin, status, count(*) FILTER (duplicate_of IS NULL) AS counted, count(duplicate_of) AS repeated
  FROM runs
  GROUP BY origin, status
)
QUALIFY counted > 0
ORDER BY origin, runs DESC, status"""
    return Query(sql)


def parsers() -> Query:
    """One row per parser and version with the files it read; of several versions all but one are of a re-read due."""
    sql = """SELECT parser, parser_version, count(*) AS files, sum(rows_parsed)::BIGINT AS rows_parsed,
  count(*) OVER (PARTITION BY parser) AS versions
FROM files
WHERE parser IS NOT NULL
GROUP BY parser, parser_version
ORDER BY parser, parser_version"""
    return Query(sql)


def summary() -> Query:
    """One row: files by status, rejected lines, newest file's time (seconds since 1970), ingest batches."""
    sql = """SELECT count(*) AS files, sum(bytes)::BIGINT AS bytes, max(nullif(mtime, 0)) AS newest_mtime_s,
  count(DISTINCT batch_id) AS batches, count(*) FILTER (status = 'parsed') AS parsed,
  count(*) FILTER (status = 'skipped') AS skipped, count(*) FILTER (status = 'rejected') AS rejected,
  count(*) FILTER (status = 'duplicate') AS copies, count(*) FILTER (status IN ('failed', 'unread')) AS failed,
  count(*) FILTER (status IN ('overwritten', 'rotated', 'shrunk', 'gone')) AS kept,
  (SELECT count(*) FROM rejects) AS lines_rejected
FROM files"""
    return Query(sql)


def row_counts() -> Query:
    """Rows of every table that is stored (views are computed from them)."""
    return Query(
        "\nUNION ALL\n".join(f"SELECT '{name}' AS table_name, count(*) AS rows FROM {name}" for name in TABLES)
        + "\nORDER BY table_name"
    )
