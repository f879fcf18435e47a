"""Addresses of pages with what they should show, relative so that they work behind any base path."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode

from sweepscope.dashboard.queries.query import Query


def sql_url(query: Query) -> str:
    """Address of the SQL page with `query` filled in, its values written out."""
    return f"sql?{urlencode({'sql': query.runnable()})}"


def run_url(run_id: str) -> str:
    """Address of a run's page, relative so that it works behind any base path."""
    return f"run?run={run_id}"


def plan_url(plan_id: str) -> str:
    """Address of the page of a plan."""
    return f"plans?{urlencode({'plan': plan_id})}"


def node_url(host: str) -> str:
    """Address of a node's page.

    >>> node_url("gpu-031")
    'node?node=gpu-031'
    """
    return f"node?{urlencode({'node': host})}"


def hang_url(source_path: str, line_no: int) -> str:
    """Address of a hang: the line, or the record of a dump, that reports it."""
    return f"hang?{urlencode({'at': f'{source_path}:{line_no}'})}"


def snapshot_url(path: str, device: int | None) -> str:
    """Address of the page of one artefact, relative so that it works behind any base path.

    >>> snapshot_url("/runs/a b/r0.pickle", 0), snapshot_url("/m.json", None)
    ('snapshot?file=%2Fruns%2Fa+b%2Fr0.pickle&device=0', 'snapshot?file=%2Fm.json')
    """
    return f"snapshot?{urlencode({'file': path, **({} if device is None else {'device': device})})}"


def compare_url(run_ids: Iterable[str | None]) -> str:
    """Address of the comparison of some runs; unknown ones are left out.

    >>> compare_url(["a1", None, "b2"])
    'compare?runs=a1%2Cb2'
    """
    return f"compare?{urlencode({'runs': ','.join(run_id for run_id in run_ids if run_id)})}"


def runs_beside_url(run_id: str) -> str:
    """Address of the list of runs in which rows are ticked to be compared with a run."""
    return f"runs?{urlencode({'beside': run_id})}"


def log_url(path: str | None, line_no: int | None) -> str | None:
    """Address of a log at one of its lines; None where the line is unknown, or of a bundled table or a URL.

    >>> log_url("/logs/a.out", 12), log_url("data/published/frontier.csv", 3)
    ('log?file=%2Flogs%2Fa.out&line=12', None)
    """
    if line_no is None or not str(path or "").startswith("/"):
        return None
    return f"log?{urlencode({'file': path, 'line': line_no})}"
