"""One memory artefact: its summary, curves, what was alive, and what differs from another."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query

_THIS = "source_path = $file AND device IS NOT DISTINCT FROM $device"


def _of(file: str, device: int | None) -> dict[str, object]:
    return {"file": file, "device": device}


def artefacts() -> Query:
    """One row per file and device, by name."""
    sql = """SELECT source_path, device, rank, oom_events, peak_is_lower_bound,
  coalesce(peak_allocated_bytes, peak_requested_active_bytes) AS peak_bytes
FROM memory_snapshots
ORDER BY source_path, device"""
    return Query(sql)


def summary(file: str, device: int | None) -> Query:
    """Its row of `memory_snapshots` with the run that it belongs to (NULL: none)."""
    sql = f"""SELECT s.*, j.run_id, r.model, r.layout, r.origin, r.status
FROM memory_snapshots AS s
LEFT JOIN run_snapshots AS j ON j.source_path = s.source_path AND j.device IS NOT DISTINCT FROM s.device
LEFT JOIN runs AS r USING (run_id)
WHERE {_THIS.replace("source_path", "s.source_path").replace("device IS", "s.device IS")}"""
    return Query(sql, _of(file, device))


def timeline(file: str, device: int | None) -> Query:
    """Its total curves, thinned out with every peak kept."""
    sql = f"""SELECT point, ts, requested_allocated_bytes, requested_active_bytes, allocated_bytes, reserved_bytes,
  phase
FROM memory_timeline
WHERE {_THIS} AND category = 'total'
ORDER BY point"""
    return Query(sql, _of(file, device))


def categories(file: str, device: int | None) -> Query:
    """Levels by category and point: of a snapshot the changes of its sites, else those of the artefact itself.

    `change_bytes` is what is added at the point.
    """
    sql = f"""WITH changes AS (
  SELECT s.category, a.point,
    a.bytes - lag(a.bytes, 1, 0) OVER (PARTITION BY a.site_no ORDER BY a.point) AS change_bytes
  FROM (SELECT * FROM memory_alive WHERE {_THIS}) AS a
  JOIN (SELECT site_no, category FROM memory_sites WHERE {_THIS}) AS s USING (site_no)
  UNION ALL
  SELECT category, point, allocated_bytes - lag(allocated_bytes, 1, 0) OVER (PARTITION BY category ORDER BY point)
  FROM memory_timeline
  WHERE {_THIS} AND category <> 'total' AND allocated_bytes IS NOT NULL
)
SELECT category, point, sum(change_bytes)::BIGINT AS change_bytes
FROM changes
GROUP BY category, point
ORDER BY point, category"""
    return Query(sql, _of(file, device))


def alive(file: str, device: int | None, point: int) -> Query:
    """What every site had alive at a point, the largest first."""
    sql = f"""SELECT s.site_no, s.category, s.rule, s.mem_origin, s.frame, s.stack, s.label, a.bytes, a.blocks,
  s.max_bytes, s.allocations, s.allocated_in_all_bytes
FROM (
  SELECT site_no, arg_max(bytes, point) AS bytes, arg_max(blocks, point) AS blocks
  FROM memory_alive
  WHERE {_THIS} AND point <= $point
  GROUP BY site_no
) AS a
JOIN (SELECT * FROM memory_sites WHERE {_THIS}) AS s USING (site_no)
WHERE a.blocks > 0
ORDER BY a.bytes DESC, s.site_no"""
    return Query(sql, {**_of(file, device), "point": point})


def at_peak(file: str, device: int | None) -> Query:
    """What was alive at the peak, for artefacts whose sites are not in the store; `blocks` of groups, not of sites."""
    sql = f"""SELECT group_no AS site_no, category, rule, mem_origin, frame, stack, label, bytes, blocks
FROM memory_at_peak
WHERE {_THIS}
ORDER BY bytes DESC, group_no"""
    return Query(sql, _of(file, device))


def differences(file: str, device: int | None, other: str, other_device: int | None) -> Query:
    """Source lines by how far their bytes at the peak differ from another artefact's: new, gone, grown, smaller."""
    side = """SELECT category, frame, sum(bytes)::BIGINT AS bytes, sum(blocks)::BIGINT AS blocks,
    any_value(stack) AS stack
  FROM memory_at_peak
  WHERE {condition}
  GROUP BY category, frame"""
    theirs = _THIS.replace("$file", "$other").replace("$device", "$other_device")
    sql = f"""WITH mine AS (
  {side.format(condition=_THIS)}
), theirs AS (
  {side.format(condition=theirs)}
)
SELECT coalesce(mine.category, theirs.category) AS category, coalesce(mine.frame, theirs.frame) AS frame,
  coalesce(mine.bytes, 0) - coalesce(theirs.bytes, 0) AS difference_bytes, coalesce(mine.bytes, 0) AS bytes,
  coalesce(theirs.bytes, 0) AS against_bytes, coalesce(mine.blocks, 0) AS blocks,
  coalesce(theirs.blocks, 0) AS against_blocks, coalesce(mine.stack, theirs.stack) AS stack
FROM mine
FULL JOIN theirs ON theirs.category = mine.category AND theirs.frame IS NOT DISTINCT FROM mine.frame
WHERE coalesce(mine.bytes, 0) <> coalesce(theirs.bytes, 0)
ORDER BY abs(difference_bytes) DESC, category, frame"""
    return Query(sql, {**_of(file, device), "other": other, "other_device": other_device})
