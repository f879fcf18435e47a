"""The list of runs: search, facets, sorting and paging, all in SQL so that its length never matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.queries.query import Query, layout_condition
from sweepscope.dashboard.selection.filters import ALL, SLICE, UNKNOWN, Filters

# Columns that the search box looks into; each may be copied from a log, a path or a ticket.
SEARCHED = names(
    "status origin model layout variant framework accelerator sweep job_id run_id status_evidence quarantine_reason "
    "source_path"
)

_FASTEST = "status = 'completed' DESC, step_time_s / gbs_tokens NULLS LAST, step_time_s NULLS LAST"
"""Order of runs whose logs state no throughput: seconds per token, else per step; those that completed first."""
SORTS: dict[str, str] = {
    # a quarantined figure is wrong or a repeat: it must not lead the list
    "mfu": "quarantine_reason IS NOT NULL, mfu DESC NULLS LAST, " + _FASTEST,
    "throughput": "quarantine_reason IS NOT NULL, tokens_per_s_per_gpu DESC NULLS LAST, " + _FASTEST,
    "step": "quarantine_reason IS NOT NULL, " + _FASTEST,
    "cost": "quarantine_reason IS NOT NULL, usd_per_m_tokens NULLS LAST",
    "gpus": "num_gpus DESC NULLS LAST, mfu DESC NULLS LAST",
    "memory": "coalesce(mem_peak_allocated_bytes, mem_peak_reserved_bytes) DESC NULLS LAST",
    "newest": "coalesce(ended_at, started_at) DESC NULLS LAST",
    "source": "source_path, line_no NULLS FIRST, attempt",
}

LISTED = names(
    "run_id status origin framework model num_nodes num_gpus accelerator layout seq_len gbs_tokens mfu "
    "tokens_per_s_per_gpu step_time_s mem_peak_allocated_bytes mem_peak_reserved_bytes steps_logged sweep started_at "
    "quarantine_reason mfu_basis"
)
_TAGS = """(SELECT string_agg(DISTINCT text, ', ' ORDER BY text) FROM run_notes AS n
    WHERE n.run_id = runs.run_id AND n.note_kind = 'tag') AS tags"""
_PRICED = """usd_per_m_tokens_of(
    (SELECT usd_per_gpu_hour FROM prices AS p WHERE p.accelerator = runs.accelerator), tokens_per_s_per_gpu
  ) AS usd_per_m_tokens"""
_TAGGED = "run_id IN (SELECT run_id FROM run_notes WHERE note_kind = 'tag' AND list_contains($facet_tag, text))"
_STATED = "(SELECT any_value(comparability) FROM published_runs AS p WHERE p.run_id = runs.run_id) AS comparability"


@dataclass(frozen=True)
class Search:
    """What the list is narrowed to. `facets` maps a facet to its chosen values; none chosen means all.

    Every word of `text` has to occur in one of SEARCHED or in an evidence line of the run.
    """

    text: str = ""
    facets: Mapping[str, Sequence[object]] = field(default_factory=dict)
    filters: Filters = field(default_factory=Filters)

    def without(self, facet: str) -> Search:
        """The same search with one facet open, to count what else it could be."""
        return replace(self, facets={name: chosen for name, chosen in self.facets.items() if name != facet})


def _condition(search: Search) -> tuple[str, dict[str, object]]:
    layouts, params = layout_condition(search.filters)
    parts = ["duplicate_of IS NULL", layouts] if layouts != "true" else ["duplicate_of IS NULL"]
    for name in SLICE:
        wanted = getattr(search.filters, name)
        if wanted == UNKNOWN:
            parts.append(f"{name} IS NULL")
        elif wanted is not None:
            parts.append(f"{name} = ${name}")
            params[name] = wanted
    if search.filters.sweep not in (None, ALL):
        parts.append("sweep = $sweep")
        params["sweep"] = search.filters.sweep
    for name, chosen in search.facets.items():
        if chosen and name == "tag":
            parts.append(_TAGGED)
            params["facet_tag"] = list(chosen)
        elif chosen:
            # NULL is a value here ("unknown"), which `IN` would never match
            known = [value for value in chosen if value != UNKNOWN]
            either = [f"list_contains($facet_{name}, {name})"] if known else []
            either += [f"{name} IS NULL"] if len(known) < len(chosen) else []
            parts.append(f"({' OR '.join(either)})")
            if known:
                params[f"facet_{name}"] = known
    for number, word in enumerate(search.text.split()):
        hit = " OR ".join(f"contains(lower({name}), $word_{number})" for name in SEARCHED)
        logged = f"run_id IN (SELECT run_id FROM events WHERE contains(lower(text), $word_{number}))"
        parts.append(f"({hit} OR {logged})")
        params[f"word_{number}"] = word.lower()
    return "\n  AND ".join(parts), params


def total(search: Search) -> Query:
    """One row: runs that match, completed ones among them, how many have what they are sorted by, origins as a list."""
    where, params = _condition(search)
    sql = f"""SELECT count(*) AS runs,
  count(*) FILTER (status = 'completed') AS completed,
  count(*) FILTER (status = 'running') AS running,
  count(mfu) AS with_mfu,
  count(tokens_per_s_per_gpu) AS with_throughput,
  count(step_time_s) AS with_step,
  count(coalesce(mem_peak_allocated_bytes, mem_peak_reserved_bytes)) AS with_memory,
  count(*) FILTER (tokens_per_s_per_gpu > 0 AND accelerator IN (SELECT accelerator FROM prices)) AS with_cost,
  list_sort(list(DISTINCT origin)) AS origins
FROM runs
WHERE {where}"""
    return Query(sql, params)


def duplicates(origins: Sequence[str]) -> Query:
    """One row: rows of some origins that tell of a run of another row; the list leaves them out."""
    sql = "SELECT count(*) AS runs FROM runs WHERE duplicate_of IS NOT NULL AND list_contains($origins, origin)"
    return Query(sql, {"origins": list(origins)})


def page(search: Search, *, sort: str, rows: int, offset: int) -> Query:
    """One page of matching runs. `sort` is a key of SORTS; ties are broken by run_id, so pages never overlap.

    `comparability` is that of a published table's MFU, NULL for other runs; `tags` are those on the
    run, its cell or its day.
    """
    where, params = _condition(search)
    sql = f"""SELECT {", ".join(LISTED)},
  {_STATED},
  {_TAGS},
  {_PRICED}
FROM runs
WHERE {where}
ORDER BY {SORTS[sort]}, run_id
LIMIT $rows OFFSET $offset"""
    return Query(sql, {**params, "rows": rows, "offset": offset})


def full(search: Search, *, sort: str) -> Query:
    """Every matching run with every column of `runs`, in the order of the list, for the download."""
    where, params = _condition(search)
    return Query(f"SELECT *,\n  {_PRICED}\nFROM runs\nWHERE {where}\nORDER BY {SORTS[sort]}, run_id", params)


def facet_value(name: str, text: str) -> object | None:
    """A facet's value as the store holds it, from its text in an address; None when it cannot be one.

    >>> facet_value("num_nodes", "16"), facet_value("model", "16"), facet_value("num_nodes", "many")
    (16, '16', None)
    """
    if name != "num_nodes" or text == UNKNOWN:
        return text
    return int(text) if text.isascii() and text.isdigit() else None


def facet(search: Search, name: str) -> Query:
    """Values of one facet with the number of runs each would leave, the most frequent first.

    The facet's own choice is left out, so that a second value can be added.
    """
    where, params = _condition(search.without(name))
    if name == "tag":
        sql = f"""SELECT text AS value, count(DISTINCT run_id) AS runs
FROM run_notes
WHERE note_kind = 'tag' AND run_id IN (SELECT run_id FROM runs WHERE {where})
GROUP BY ALL
ORDER BY runs DESC, value"""
        return Query(sql, params)
    sql = f"""SELECT {name} AS value, count(*) AS runs
FROM runs
WHERE {where}
GROUP BY ALL
ORDER BY runs DESC, value NULLS LAST"""
    return Query(sql, params)
