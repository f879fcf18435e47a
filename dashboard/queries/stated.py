"""What runs lack that their logs do not say, and what the user has stated of them."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query

GAPS = {
    "accelerator": "accelerator",
    "model": "coalesce(model, CAST(params AS VARCHAR))",
    "num_gpus": "num_gpus",
    "seq_len": "seq_len",
    "gbs": "gbs",
}
"""Columns without which a run has no MFU or no place in a ranking, and what in `runs` tells each."""


def gaps() -> Query:
    """One row per folder of runs some of which lack a value of GAPS: runs, and those without each; most first."""
    without = ",\n  ".join(f"count(*) FILTER ({known} IS NULL) AS no_{name}" for name, known in GAPS.items())
    lacking = " + ".join(f"no_{name}" for name in GAPS)
    sql = f"""WITH own AS (
  SELECT *, CASE WHEN ends_with('/' || run_dir, '/' || sweep) THEN run_dir
    ELSE regexp_replace(run_dir, '/[^/]*$', '') END AS folder
  FROM runs
  WHERE origin <> 'published' AND run_dir IS NOT NULL AND duplicate_of IS NULL
)
SELECT folder, count(*) AS runs,
  {without}
FROM own
GROUP BY folder
HAVING {lacking} > 0
ORDER BY {lacking} DESC, folder"""
    return Query(sql)


def stated() -> Query:
    """One row per statement that runs have: what is stated where, of how many runs, and of how many it counts."""
    sql = """SELECT name, value, stated_in, count(*) AS runs, count(*) FILTER (is_used) AS runs_used
FROM settings
WHERE setting_source IN ('stated', 'stated_override')
GROUP BY ALL
ORDER BY name, value, stated_in"""
    return Query(sql)
