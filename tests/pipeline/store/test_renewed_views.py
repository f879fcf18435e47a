"""Views computed again for changed runs alone have the rows that computing all of them gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from sweepscope.pipeline.store import renewed_views
from sweepscope.pipeline.store.exchange import Keys
from sweepscope.pipeline.store.publish import VIEW_FOLDER, load_views
from sweepscope.pipeline.store.stored_views import as_stored
from sweepscope.schemas.core import ddl
from sweepscope.schemas.registry import TABLES, VIEWS
from tests.properties import draws

Rows = dict[str, list[dict[str, Any]]]

_FOLDER = st.sampled_from(["/s", "/s/a", "/s/a/out", "/s/b", "/t"])
_LOG = st.sampled_from(["/s/a/1.log", "/s/a/2.log", "/s/b/1.log", "/t/1.log"])
_BESIDE = st.sampled_from(["/s/a/nccl.txt", "/s/b/nccl.txt", "/t/nccl.txt", "/s/a/snapshot.pickle"])
_DIRECTORY = {
    "/s/a/nccl.txt": "/s/a",
    "/s/b/nccl.txt": "/s/b",
    "/t/nccl.txt": None,
    "/s/a/snapshot.pickle": "/s/a/out",
}
"""Of a file beside logs: all tables give the same."""
_OOM = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.00 GiB is free. "
    "Of the allocated memory 70.00 GiB is allocated by PyTorch, and 3.00 GiB is reserved by PyTorch but unallocated."
)


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def _row(**columns: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(columns)


_OF_TABLES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "runs": _row(
        source_path=_LOG,
        run_dir=_maybe(_FOLDER),
        line_no=st.integers(1, 90),
        attempt=st.integers(1, 3),
        origin=st.sampled_from(["measured", "published"]),
        sweep=_maybe(st.sampled_from(["s", "t"])),
        job_id=_maybe(st.sampled_from(["1", "2"])),
        status=st.sampled_from(["completed", "oom", "crash"]),
        hosts=_maybe(st.sampled_from(["n1,n2", "n3"])),
        first_failed_host=_maybe(st.just("n4")),
        accelerator=_maybe(st.just("H100")),
        num_gpus=st.just(8),
        model=st.just("m-7b"),
        num_nodes=st.sampled_from([1, 1, 2]),
        seq_len=st.just(4096),
        gbs_tokens=st.just(1 << 20),
        framework=st.sampled_from(["picotron", "nanotron"]),
        tokens_per_s_per_gpu=st.sampled_from([100.0, 104.0, 50.0]),
        gpu_hours=_maybe(st.sampled_from([1.0, 3.0])),
        allocated_gpu_hours=_maybe(st.sampled_from([2.0, 9.0])),
        mem_peak_allocated_bytes=_maybe(st.just(7 << 30)),
        mem_peak_reserved_bytes=_maybe(st.just(8 << 30)),
        duplicate_of=st.sampled_from([None, None, None, "other"]),
    ),
    "files": _row(path=_LOG | _BESIDE, unit=_FOLDER),
    "events": _row(
        source_path=_LOG,
        kind=st.sampled_from(["launch", "oom", "error"]),
        host=_maybe(st.sampled_from(["n5", "n6"])),
        text=st.just(_OOM),
    ),
    "nccl_files": _row(
        source_path=_BESIDE,
        run_dir=_maybe(_FOLDER),
        origin=st.just("measured"),
        sweep=_maybe(st.just("s")),
        nccl_version=st.sampled_from(["2.21.5", "2.27.3"]),
    ),
    "nccl_hangs": _row(source_path=_BESIDE, run_dir=_maybe(_FOLDER)),
    "nccl_ranks": _row(source_path=_BESIDE | _LOG, line_no=st.integers(1, 90), host=st.sampled_from(["n7", "n8"])),
    "estimates": _row(est_status=st.just("ok"), est_mem_bytes=st.integers(1, 9)),
    "memory_snapshots": _row(
        source_path=_BESIDE,
        run_dir=_maybe(_FOLDER),
        device=st.just(0),
        mem_source=st.just("snapshot"),
        peak_allocated_bytes=st.integers(1, 9),
        peak_reserved_bytes=st.just(9),
    ),
    "memory_at_peak": _row(
        source_path=_BESIDE,
        device=st.just(0),
        category=st.sampled_from(["parameters", "unknown"]),
        bytes=st.integers(1, 9),
    ),
}


def _distinct(name: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row of which files and snapshots have one each, as their keys want, and with the one directory of its file."""
    if row.get("source_path") in _DIRECTORY and "run_dir" in row:
        row = {**row, "run_dir": _DIRECTORY[row["source_path"]]}
    key = {"files": "path", "memory_snapshots": "source_path", "nccl_files": "source_path"}.get(name)
    return {**row, "_key": row[key]} if key else row


@st.composite
def _tables(draw: st.DrawFn) -> Rows:
    rows: Rows = {"runs": draw(st.lists(_OF_TABLES["runs"], min_size=3, max_size=8))}
    for number, row in enumerate(rows["runs"]):
        row["run_id"] = f"r{number}"
    for name, one in _OF_TABLES.items():
        if name == "runs":
            continue
        of_runs = "run_id" in TABLES[name].column_names
        found = [_distinct(name, row) for row in draw(st.lists(one, max_size=4))]
        unique = {row.pop("_key", number): row for number, row in enumerate(found)}
        rows[name] = [
            {**row, **({"run_id": draw(st.sampled_from([one["run_id"] for one in rows["runs"]]))} if of_runs else {})}
            for row in unique.values()
        ]
    rows["estimates"] = list({row["run_id"]: row for row in rows["estimates"]}.values())
    rows["accelerators"] = [{"accelerator": "H100", "memory_bytes": 80 << 30}]
    return rows


@contextmanager
def _store_of(
    rows: Mapping[str, Sequence[Mapping[str, Any]]], views: Mapping[str, str]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A store with these rows and the views that are kept; a region of everything is one, too."""
    with pytest.MonkeyPatch.context() as patch, duckdb.connect() as connection:
        patch.setattr(renewed_views, "MOST", 2.0)
        connection.execute("ATTACH ':memory:' AS store; USE store")
        for table in TABLES.values():
            connection.execute(ddl.create_table(table))
        _fill(connection, rows)
        for statement in as_stored(views).values():
            connection.execute(statement)
        yield connection


def _fill(connection: duckdb.DuckDBPyConnection, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    for name, some in rows.items():
        if some:
            frame = pl.DataFrame(list(some), infer_schema_length=None)
            frame = frame.cast({column: TABLES[name].polars_schema[column] for column in frame.columns})
            connection.register("filled", frame.to_arrow())
            connection.execute(f"INSERT INTO {name} BY NAME FROM filled")
            connection.unregister("filled")


def _keys(rows: Sequence[Mapping[str, Any]]) -> Keys:
    def values(*names: str) -> pl.Series:
        found = sorted({row[name] for row in rows for name in names if row.get(name) is not None})
        return pl.Series(found, dtype=pl.String)

    return Keys(values("run_id"), values("source_path", "path"), values("run_dir"), values("unit"))


@pytest.fixture(scope="module")
def views() -> dict[str, str]:
    return load_views(VIEW_FOLDER)


def _ranked(run_id: str, num_nodes: int, speed: float, **columns: Any) -> dict[str, Any]:
    """A row of a run that has a place in the ranking of its cell."""
    place = {"run_id": run_id, "source_path": f"/s/{run_id}/1.log", "run_dir": f"/s/{run_id}", "origin": "measured"}
    cell = {"model": "m-7b", "num_nodes": num_nodes, "num_gpus": 8, "seq_len": 4096, "gbs_tokens": 1 << 20}
    return {**place, **cell, "status": "completed", "tokens_per_s_per_gpu": speed, **columns}


_VERSIONS = [
    {"source_path": f"/s/{name}.txt", "origin": "measured", "nccl_version": version}
    for name, version in (("a", "2.21.5"), ("b", "2.27.3"))
]
"""Two files, of which only the ledger says that they belong to one run."""


def _all_rows(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> dict[str, pl.DataFrame]:
    return {name: connection.sql(f"FROM {name} ORDER BY ALL").pl() for name in names}


@settings(max_examples=draws(60), suppress_health_check=list(HealthCheck), deadline=None)
@given(st.data())
def test_rows_are_those_of_computing_everything(views: dict[str, str], data: st.DataObject) -> None:
    """Rows of some runs, files and directories go and others come; views are brought up to that both ways."""
    rows = data.draw(_tables())
    flat = [(name, number) for name, some in rows.items() for number in range(len(some)) if name != "accelerators"]
    gone = data.draw(st.sets(st.sampled_from(flat), max_size=3))
    late = data.draw(st.sets(st.sampled_from(flat), max_size=3))
    first = {name: [row for at, row in enumerate(some) if (name, at) not in late] for name, some in rows.items()}
    last = {name: [row for at, row in enumerate(some) if (name, at) not in gone] for name, some in rows.items()}
    changed = {name for name, _ in gone ^ late}
    keys = _keys([rows[name][at] for name, at in gone ^ late])
    with _store_of(first, views) as connection:
        renewed_views.remember_runs(connection)
        for name in rows:
            connection.execute(f"DELETE FROM {name}")
        _fill(connection, last)
        renewed_views.compute_again(connection, views, changed, keys)
        names = [name for name, view in VIEWS.items() if view.is_stored]
        renewed = _all_rows(connection, names)
        renewed_views.compute_again(connection, views, set(TABLES), None)
        for name, wanted in _all_rows(connection, names).items():
            assert_frame_equal(renewed[name], wanted)


def test_a_region_is_what_shares_a_log_a_folder_or_a_billed_job(views: dict[str, str]) -> None:
    runs = [
        {
            "run_id": "new",
            "source_path": "/s/a/1.log",
            "run_dir": "/s/a",
            "origin": "measured",
            "sweep": "s",
            "job_id": "1",
        },
        {
            "run_id": "job",
            "source_path": "/s/b/1.log",
            "run_dir": "/s/b",
            "origin": "measured",
            "sweep": "s",
            "job_id": "1",
        },
        {"run_id": "other", "source_path": "/s/c/1.log", "run_dir": "/s/c", "origin": "measured", "sweep": "s"},
    ]
    for billed, wanted in ((None, {"new"}), (4.0, {"new", "job"})):
        new, *known = [{**row, "allocated_gpu_hours": billed} for row in runs]
        with _store_of({"runs": known}, views) as connection:
            renewed_views.remember_runs(connection)
            _fill(connection, {"runs": [new]})
            renewed_views.compute_again(connection, views, {"runs"}, _keys(runs[:1]))
            assert {one for (one,) in connection.sql("FROM region_runs").fetchall()} == wanted


def test_a_billed_run_that_leaves_a_job_has_those_that_stay_in_its_region(views: dict[str, str]) -> None:
    """Not those of other billed jobs of its sweep: a store may hold thousands of them."""
    jobs = {"leaving": ("1", 4.0), "staying": ("1", None), "other": ("2", 4.0)}
    runs = [
        {
            **{"run_id": name, "origin": "measured", "sweep": "s", "job_id": job, "allocated_gpu_hours": billed},
            **{"source_path": f"/s/{name}/1.log", "run_dir": f"/s/{name}"},
        }
        for name, (job, billed) in jobs.items()
    ]
    with _store_of({"runs": runs}, views) as connection:
        renewed_views.remember_runs(connection)
        connection.execute("DELETE FROM runs WHERE run_id = 'leaving'")
        renewed_views.compute_again(connection, views, {"runs"}, _keys(runs[:1]))
        assert {one for (one,) in connection.sql("FROM region_runs").fetchall()} == {"leaving", "staying"}


@pytest.mark.parametrize(
    ("first", "last", "changed", "view"),
    [
        (
            {"runs": [_ranked("slow", 1, 90.0), _ranked("two", 2, 80.0)]},
            {"runs": [_ranked("slow", 1, 90.0), _ranked("two", 2, 80.0), _ranked("fast", 1, 99.0, mbs=2)]},
            [_ranked("fast", 1, 99.0, mbs=2)],
            "ranked_layouts",
        ),
        (
            {"runs": [_ranked("stays", 1, 90.0), _ranked("moves", 1, 99.0, mbs=2)]},
            {"runs": [_ranked("stays", 1, 90.0), _ranked("moves", 2, 99.0, mbs=2)]},
            [_ranked("moves", 2, 99.0, mbs=2)],
            "ranked_layouts",
        ),
        (
            {"runs": [], "nccl_files": _VERSIONS, "files": [{"path": "/s/a.txt", "unit": "/s"}]},
            {
                "runs": [],
                "nccl_files": _VERSIONS,
                "files": [{"path": "/s/a.txt", "unit": "/s"}, {"path": "/s/b.txt", "unit": "/s"}],
            },
            [{"path": "/s/b.txt", "unit": "/s"}],
            "nccl_findings",
        ),
    ],
    ids=["another run in a group", "a run that leaves a group", "a file that joins a unit"],
)
def test_views_across_runs_follow_what_they_compare(
    views: dict[str, str], first: Rows, last: Rows, changed: Sequence[dict[str, Any]], view: str
) -> None:
    with _store_of(first, views) as connection:
        before = _all_rows(connection, [view])[view]
        renewed_views.remember_runs(connection)
        for name in first:
            connection.execute(f"DELETE FROM {name}")
        _fill(connection, last)
        names = {name for name in first if first[name] != last[name]}
        renewed_views.compute_again(connection, views, names, _keys(changed))
        renewed = _all_rows(connection, [view])[view]
        renewed_views.compute_again(connection, views, set(TABLES), None)
        assert_frame_equal(renewed, _all_rows(connection, [view])[view])
        assert not renewed.equals(before)
