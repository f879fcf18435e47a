"""What sets apart rows of one layout whose runs have other options."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query

_ALIKE = "model, num_gpus, layout, recompute, precision"
_MOST_NAMED = 3
"""Options that are named; of more, their number is."""


def naming_options(query: Query, order: str) -> Query:
    """A query on rows with `run_id`, `layout` and `options_id`, with `variant` filled where it is NULL.

    There it has the options in which a row differs from others of its layout on as many GPUs: `compile layer`.
    `order` are the columns by which the rows are sorted again.
    """
    sql = f"""WITH listed AS ({query.sql}),
several AS (
  SELECT *, count(DISTINCT options_id) OVER alike > 1 AS differs, count(*) OVER alike AS runs_alike,
    dense_rank() OVER (ORDER BY {_ALIKE}) AS alike
  FROM listed
  WINDOW alike AS (PARTITION BY {_ALIKE})
),
stated AS (
  SELECT alike, runs_alike, run_id, name, value FROM several JOIN arguments USING (run_id) WHERE differs AND is_option
),
named AS (
  SELECT alike, name
  FROM stated
  GROUP BY alike, name
  HAVING count(DISTINCT value) > 1 OR count(*) < any_value(runs_alike)
),
texts AS (
  SELECT run_id, list(name || ' ' || value ORDER BY name) AS options
  FROM stated JOIN named USING (alike, name)
  GROUP BY run_id
)
SELECT several.* EXCLUDE (differs, runs_alike, alike) REPLACE (coalesce(variant, CASE
    WHEN len(options) <= {_MOST_NAMED} THEN array_to_string(options, ' · ')
    ELSE array_to_string(options[:{_MOST_NAMED}], ' · ') || ' · ' || len(options) - {_MOST_NAMED} || ' more'
  END) AS variant)
FROM several
LEFT JOIN texts USING (run_id)
ORDER BY {order}"""
    return Query(sql, query.params)
