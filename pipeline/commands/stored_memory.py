"""GPU memory in the store: a run's waterfall from estimate to device, a sweep's fragmentation and fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb

from sweepscope.pipeline.errors import StoreError, UsageError
from sweepscope.pipeline.memory.report import size
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.publish import macros
from sweepscope.pipeline.store.published import connect, current
from sweepscope.schemas.vocab.memory import MEM_FIT, PART, TERM

Row = Mapping[str, Any]

_SHOWN = 20
_SPREAD = "SELECT * FROM memory_fragmentation WHERE {scope} ORDER BY n DESC, origin, framework"
_TERMS = """SELECT * FROM memory_terms WHERE {scope} AND explained_share IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY origin, sweep, framework ORDER BY explained_share DESC) <= 2
ORDER BY origin, framework, explained_share DESC"""
_FIT = """SELECT run_id, origin, sweep, layout, model, status, mem_verdict, verdict_evidence
FROM memory_fit WHERE {scope} ORDER BY status = 'oom' DESC, origin, sweep, run_id"""


def memory_of_run(home: Home, run_id: str) -> dict[str, Any]:
    """The waterfall of one run, its parts in order and its verdict (None: it neither failed nor came near).

    Raises UsageError when the store has no such run or nothing about its memory.
    """
    with _store(home) as con:
        found = _rows(con, "SELECT * FROM memory_waterfall WHERE run_id = $1", [run_id])
        fit = _rows(con, "SELECT * FROM memory_fit WHERE run_id = $1", [run_id])
        if not found and not fit:
            known = _rows(con, "SELECT 1 FROM runs WHERE run_id = $1", [run_id])
            what = "has no memory figures of" if known else "has no run"
            raise UsageError(
                f"This store {what} {run_id}. `sweepscope query 'FROM memory_waterfall'` lists what is known."
            )
        parts = _rows(con, "SELECT * FROM memory_waterfall_parts WHERE run_id = $1 ORDER BY part_no", [run_id])
    return {"run": found[0] if found else None, "parts": parts, "fit": fit[0] if fit else None}


def memory_of_sweep(home: Home, sweep: str | None) -> dict[str, Any]:
    """Fragmentation, terms and verdicts of one sweep, or over all sweeps. Raises UsageError for an unknown sweep."""
    scope, fit_scope = ("sweep = $1", "sweep = $1") if sweep is not None else ("sweep IS NULL", "true")
    values = [] if sweep is None else [sweep]
    with _store(home) as con:
        if sweep is not None and not _rows(con, "SELECT 1 FROM runs WHERE sweep = $1 LIMIT 1", [sweep]):
            listing = "`sweepscope query 'SELECT DISTINCT sweep FROM runs'` lists them"
            raise UsageError(f"This store has no sweep {sweep}. {listing}.")
        return {
            "sweep": sweep,
            "fragmentation": _rows(con, _SPREAD.format(scope=scope), values),
            "terms": _rows(con, _TERMS.format(scope=scope), values),
            "fit": _rows(con, _FIT.format(scope=fit_scope), values),
        }


def file_verdict(row: Row, groups: Iterable[Row]) -> dict[str, str] | None:
    """Verdict on a snapshot with a failed allocation, by the rules of the store; None where nothing failed."""
    if not row.get("oom_events") or row["oom_requested_bytes"] is None:
        return None
    parts: dict[str, int] = {}
    for group in groups:
        parts[group["category"]] = parts.get(group["category"], 0) + group["bytes"]
    known = {name: parts.get(name, 0) for name in ("parameters", "gradients", "optimizer_state")} if parts else {}
    values = {
        "requested": row["oom_requested_bytes"],
        "free": row["oom_device_free_bytes"],
        "inactive": row["oom_inactive_bytes"],
        "allocated": row["oom_requested_active_bytes"],
        "is_expandable": row["is_expandable"],
        "states": sum(known.values()) or None,
        "activations": sum(parts.get(name, 0) for name in ("activations", "input", "autograd_detail")) or None,
    }
    with duckdb.connect() as con:
        con.execute(macros())
        (found,) = _rows(con, _FILE_VERDICT, values)
    return {**found, "meaning": MEM_FIT[found["mem_verdict"]]}


_FILE_VERDICT = """SELECT
  memory_verdict_of(
    true, false, $requested::BIGINT - $free::BIGINT, $inactive::BIGINT, page_bytes($requested::BIGINT),
    $is_expandable::BOOLEAN, NULL::DOUBLE, $states::BIGINT, $activations::BIGINT, NULL::VARCHAR, NULL::BIGINT,
    $allocated::BIGINT, NULL::BIGINT
  ) AS mem_verdict,
  memory_evidence_of(
    mem_verdict, NULL::VARCHAR, $requested::BIGINT, $free::BIGINT, $inactive::BIGINT, NULL::DOUBLE, $states::BIGINT,
    $activations::BIGINT, false, NULL::VARCHAR, NULL::BIGINT, $allocated::BIGINT, NULL::BIGINT, NULL::BIGINT
  ) AS verdict_evidence"""


def run_text(memory: Mapping[str, Any]) -> str:
    """A run's waterfall as lines: levels in full, their gaps and parts indented."""
    lines = []
    if memory["run"]:
        run = memory["run"]
        lines.append(" ".join(str(run[name]) for name in ("run_id", "framework", "model", "layout") if run[name]))
    for part in memory["parts"]:
        if part["part_kind"] == "measured" and part["bytes"] is None:
            continue  # no snapshot: one line below
        mark = {"level": "", "gap": "+ ", "estimated": "    ", "measured": "    of it "}[part["part_kind"]]
        shown = "unknown" if part["bytes"] is None else size(part["bytes"])
        lines.append(f"{shown:>12}  {mark}{PART[part['part']]}")
    if memory["run"] and memory["run"]["snapshot_path"] is None:
        lines.append("no allocator snapshot: the use of the allocated bytes is unknown")
    if memory["fit"]:
        lines.append(f"{MEM_FIT[memory['fit']['mem_verdict']]}: {memory['fit']['verdict_evidence']}")
    return "\n".join(lines)


def sweep_text(memory: Mapping[str, Any]) -> str:
    """A sweep's fragmentation, terms and verdicts as lines."""
    lines = [f"sweep {memory['sweep']}" if memory["sweep"] else "all sweeps"]
    lines.append("\nreserved beyond allocated (eps_frag): median, 10 to 90 %, runs")
    lines += [_spread_line(row) for row in memory["fragmentation"]] or ["  no run logs both"]
    lines.append("\nthe term of the estimate that is off, one at a time: factor, share of the residuals explained")
    lines += [_term_line(row) for row in memory["terms"]] or ["  too few completed runs with an estimate and a peak"]
    lines.append("\nout of GPU memory, or near it")
    fit: Sequence[Row] = memory["fit"]
    lines += [
        f"  {row['run_id']}  {MEM_FIT[row['mem_verdict']]}\n      {row['verdict_evidence']}" for row in fit[:_SHOWN]
    ]
    if len(fit) > _SHOWN:
        lines.append(f"  {len(fit) - _SHOWN} more: sweepscope query 'FROM memory_fit'")
    return "\n".join(lines if fit else [*lines, "  no run"])


def _spread_line(row: Row) -> str:
    estimated = f", estimates allow {row['est_eps_frag']:.1%}" if row["est_eps_frag"] is not None else ""
    return (
        f"  {_label(row)}: {row['eps_frag']:.1%} ({row['eps_frag_low']:.1%} to {row['eps_frag_high']:.1%}, "
        f"n={row['n']:,}){estimated}"
    )


def _term_line(row: Row) -> str:
    by = f"x {row['term_factor']:.2f}" if row["term_factor"] is not None else f"+ {size(row['term_offset_bytes'])}"
    return f"  {_label(row)}: {TERM[row['term']]} {by}, {row['explained_share']:.0%} (n={row['n']:,})"


def _label(row: Row) -> str:
    return " ".join(str(part) for part in (row["origin"], row["framework"]) if part)


def _store(home: Home) -> duckdb.DuckDBPyConnection:
    return connect(current(home.path))


def _rows(
    con: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] | Mapping[str, object]
) -> list[dict[str, Any]]:
    """Rows of a query with parameters by place or by name. Raises StoreError for a store without its views."""
    try:
        found: list[dict[str, Any]] = con.sql(sql, params=parameters).pl().to_dicts()
    except duckdb.CatalogException as error:
        raise StoreError("This store is older than its views on memory. Run `sweepscope ingest PATH` again.") from error
    return found
