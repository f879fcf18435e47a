"""The list of runs on a real DuckDB: search, facets, paging."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from sweepscope.dashboard.queries import runs
from sweepscope.dashboard.queries.runs import SORTS, Search
from sweepscope.dashboard.selection.filters import UNKNOWN, Filters, Range
from tests.dashboard.store_rows import event_row, run_row, write_store


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rows = [
        run_row("a1", tp=8),
        run_row("a2", status="oom", mfu=None, model=None, num_nodes=16),
        run_row("a3", framework="nanotron", mfu=0.4, sweep="it's 100% new"),
        run_row("a4", mfu=1.5, quarantine_reason="above the peak"),
        run_row("p1", origin="published", mfu=0.3),
        run_row("p2", origin="published", duplicate_of="other_table"),
    ]
    path = write_store(
        tmp_path_factory.mktemp("store") / "results-1.duckdb",
        runs=rows,
        events=[event_row("a2", text="Watchdog caught collective operation timeout", kind="hang")],
    )
    with duckdb.connect(str(path), read_only=True) as connection:
        yield connection


def ids(con: Any, search: Search, sort: str = "mfu") -> list[str]:
    found: list[str] = runs.page(search, sort=sort, rows=100, offset=0).run(con)["run_id"].to_list()
    return found


def test_lists_every_run_but_duplicates_and_quarantined_ones_last(con: Any) -> None:
    assert ids(con, Search()) == ["a3", "p1", "a1", "a2", "a4"]
    assert runs.duplicates(["published", "measured"]).run(con).item() == 1
    assert runs.duplicates(["measured"]).run(con).item() == 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nanotron", ["a3"]),
        ("LLAMA mi300x", ["a3", "p1", "a1", "a4"]),
        ("watchdog", ["a2"]),
        ("oom", ["a2"]),
        ("above the peak", ["a4"]),
        ("it's 100%", ["a3"]),
        ("a1/train.out", ["a1"]),
        ("' OR 1=1 --", []),
        ("   ", ["a3", "p1", "a1", "a2", "a4"]),
    ],
)
def test_every_word_has_to_stand_somewhere_in_the_run(con: Any, text: str, found: list[str]) -> None:
    assert ids(con, Search(text)) == found


def test_facets_combine_and_unknown_is_a_value(con: Any) -> None:
    assert ids(con, Search(facets={"origin": ["measured"], "framework": ["megatron"]})) == ["a1", "a2", "a4"]
    assert ids(con, Search(facets={"model": [UNKNOWN]})) == ["a2"]
    assert ids(con, Search(facets={"model": [UNKNOWN, "Llama 8B"], "num_nodes": [16]})) == ["a2"]


def test_filters_of_the_address_narrow_the_list_too(con: Any) -> None:
    assert ids(con, Search(filters=Filters(tp=Range(8)))) == ["a1"]
    assert ids(con, Search(filters=Filters(origin="published", accelerator="MI300X"))) == ["p1"]
    assert ids(con, Search(filters=Filters(accelerator=UNKNOWN))) == []


def test_a_facet_counts_what_each_value_would_leave_whatever_it_holds_now(con: Any) -> None:
    search = Search(facets={"status": ["oom"], "origin": ["measured"]})
    assert dict(runs.facet(search, "status").run(con).iter_rows()) == {"completed": 3, "oom": 1}


def test_total_counts_outcomes_and_origins(con: Any) -> None:
    assert runs.total(Search()).run(con).row(0, named=True) == {
        "runs": 5,
        "completed": 4,
        "running": 0,
        "with_mfu": 4,
        "with_throughput": 5,
        "with_step": 5,
        "with_memory": 5,
        "with_cost": 0,
        "origins": ["measured", "published"],
    }


@pytest.mark.parametrize("sort", SORTS)
def test_pages_of_every_order_cover_all_runs_once(con: Any, sort: str) -> None:
    pages = [runs.page(Search(), sort=sort, rows=2, offset=offset).run(con)["run_id"] for offset in (0, 2, 4)]
    assert sorted(run for page in pages for run in page) == ["a1", "a2", "a3", "a4", "p1"]


def test_the_download_has_every_column_and_every_matching_run(con: Any) -> None:
    full = runs.full(Search("measured"), sort="mfu").run(con)
    assert full.height == 4
    assert {"status_evidence", "mem_peak_reserved_bytes", "seq_len"} <= set(full.columns)


def test_the_query_shown_runs_as_it_stands(con: Any) -> None:
    shown = runs.page(Search("it's", {"origin": ["measured"]}), sort="mfu", rows=10, offset=0).runnable()
    assert [row[0] for row in con.sql(shown).fetchall()] == ["a3"]
