"""One hang: its collectives, its lines and dumps, and the runs that it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweepscope.dashboard.queries.network import HANGS
from sweepscope.dashboard.queries.query import Query

_OF_UNIT = "SELECT path FROM files WHERE unit = $unit UNION ALL SELECT $source_path"


def incident(source_path: str, line_no: int) -> Query:
    """The hang that this line of a file, or this record of a dump, reports, with its unit; else no row."""
    sql = f"""SELECT h.*, coalesce(f.unit, h.source_path) AS unit
FROM ({HANGS}) AS h
LEFT JOIN files AS f ON f.path = h.source_path
WHERE h.source_path = $source_path AND h.line_no = $line_no
ORDER BY h.seq"""
    return Query(sql, {"source_path": source_path, "line_no": line_no})


def collectives(hang: Mapping[str, Any]) -> Query:
    """All collectives of the incident: those of the same unit and evidence, the first one first."""
    sql = f"""SELECT *
FROM nccl_hangs
WHERE source_path IN ({_OF_UNIT}) AND evidence_source = $evidence_source
ORDER BY is_first DESC, source_path, line_no, seq"""
    return Query(sql, {**_of(hang), "evidence_source": hang["evidence_source"]})


def lines(hang: Mapping[str, Any]) -> Query:
    """Lines of the watchdog in the files of the incident, and what failed before."""
    sql = f"""SELECT *
FROM nccl_hang_lines
WHERE source_path IN ({_OF_UNIT})
ORDER BY source_path, line_no"""
    return Query(sql, _of(hang))


def records(hang: Mapping[str, Any], *, around: int) -> Query:
    """Flight records of the incident's group: `around` collectives before the hang and what came after.

    Of a hang known from dumps, those dumps; else dumps beside the log.
    """
    beside = f"source_path IN ({_OF_UNIT})" if hang["evidence_source"] == "flight_recorder" else "run_dir = $run_dir"
    source = {"run_dir": hang["run_dir"]} if beside.startswith("run_dir") else _of(hang)
    sql = f"""SELECT rank, seq, op, op_state, is_retired, profiling_name, input_sizes, input_dtypes, output_sizes,
  output_dtypes, created_ns, found_started_ns, found_completed_ns, timeout_ms, last_enqueued_seq, last_started_seq,
  last_completed_seq, stack, source_path, line_no, min(seq) OVER (PARTITION BY rank) AS first_seq,
  max(seq) OVER (PARTITION BY rank) AS last_seq
FROM flight_records
WHERE {beside} AND rank IS NOT NULL AND seq IS NOT NULL AND NOT is_p2p
  AND $process_group IN (pg_name, pg_name || '(' || pg_desc || ')')
QUALIFY seq >= least($seq, last_seq) - {around}
ORDER BY rank, seq"""
    return Query(sql, {**source, "process_group": hang["process_group"], "seq": hang["seq"]})


def dumps(hang: Mapping[str, Any]) -> Query:
    """One row per rank with a dump beside the incident, whatever group its records are of."""
    sql = f"""SELECT rank, any_value(source_path) AS source_path, count(*) AS records
FROM flight_records
WHERE source_path IN ({_OF_UNIT}) AND rank IS NOT NULL
GROUP BY rank
ORDER BY rank"""
    return Query(sql, _of(hang))


def runs(hang: Mapping[str, Any]) -> Query:
    """Runs of the incident's files; for dumps, those of their directory."""
    sql = f"""SELECT run_id, status, model, num_gpus, source_path
FROM runs
WHERE source_path IN ({_OF_UNIT}) OR ($is_dump AND run_dir = $run_dir)
ORDER BY run_id
LIMIT 20"""
    return Query(
        sql, {**_of(hang), "is_dump": hang["evidence_source"] == "flight_recorder", "run_dir": hang["run_dir"]}
    )


def of_run(run_id: str) -> Query:
    """Hangs in the files of a run, and dumps beside them; the first collective of each incident."""
    sql = """SELECT h.*
FROM nccl_hangs AS h
JOIN runs AS r ON r.run_id = $run_id
LEFT JOIN files AS f ON f.path = h.source_path
LEFT JOIN files AS own ON own.path = r.source_path
WHERE h.source_path = r.source_path OR f.unit = own.unit
  OR (h.evidence_source = 'flight_recorder' AND h.run_dir = r.run_dir)
ORDER BY h.is_first DESC, h.source_path, h.line_no"""
    return Query(sql, {"run_id": run_id})


def _of(hang: Mapping[str, Any]) -> dict[str, object]:
    return {"unit": hang["unit"], "source_path": hang["source_path"]}
