"""The same facts in the same words: what pages say of how many and how well, held against plain SQL over the store.

Each count is derived here from `runs` alone, by the shortest statement, and compared with each sentence that states it:
over the demo, corpora of real files (all of them with `SWEEPSCOPE_THOROUGH=1`), one run, only failures, and no run.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sweepscope.dashboard.format.numbers import percent
from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import parse_batch, validate_batch
from sweepscope.pipeline.store.published import connect
from sweepscope.schemas.registry import TABLES
from tests.dashboard.app_pages.test_data_pages import look_at, text_of
from tests.dashboard.store_rows import Row, make_real_home, run_row
from tests.paths import CORPUS, NO_CORPUS
from tests.pipeline.ingest_in_memory import LATER
from tests.properties import THOROUGH

CORPORA = ("real_runs", "logs", *(("picotron_sweep", "nccl", "memory") if THOROUGH else ()))
Facts = dict[str, Any]


def _failed(number: int, status: str) -> Row:
    return run_row(f"f{number}", status=status, mfu=None, tokens_per_s_per_gpu=None, tokens_per_s=None)


def _rows_of(corpus: str) -> dict[str, list[Row]]:
    if not (CORPUS / corpus).is_dir():
        pytest.skip(NO_CORPUS)
    tables = validate_batch(parse_batch(plan.find([str(CORPUS / corpus)]), now=LATER))
    return {name: frame.to_dicts() for name, frame in tables.items() if name in TABLES and frame.height}


STORES: dict[str, Callable[[], dict[str, list[Row]]]] = {
    "one run": lambda: {"runs": [run_row()]},
    "one failure": lambda: {"runs": [_failed(1, "truncated")]},
    "only failures": lambda: {"runs": [_failed(i, s) for i, s in enumerate(("oom", "oom", "crash", "truncated"))]},
    "no verdict": lambda: {"runs": [_failed(i, s) for i, s in enumerate(("cancelled", "unknown", "running"))]},
    "no runs": lambda: {"files": []},
    "copies": lambda: {"runs": [run_row(), run_row("again", duplicate_of="a1"), _failed(1, "timeout")]},
    "held": lambda: {"runs": [run_row(held_after_end_s=7200.0, started_at=None, ended_at=None), _failed(1, "hang")]},
    **{name: (lambda name=name: _rows_of(name)) for name in CORPORA},
}


@pytest.fixture(scope="module", params=["demo", *STORES])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "demo":
        return Path(request.getfixturevalue("demo_home"))
    return make_real_home(tmp_path_factory.mktemp("truth") / "home", **STORES[request.param]())


@pytest.fixture(scope="module")
def facts(home: Path) -> Iterator[dict[str, Facts]]:
    """What plain SQL counts, by origin."""
    sql = """SELECT origin, count(*) AS runs,
  count(*) FILTER (status = 'completed') AS completed,
  count(*) FILTER (status IN ('oom', 'host_oom', 'hang', 'nccl_error', 'crash', 'timeout', 'node_fail', 'preempted',
    'truncated', 'failed')) AS failed,
  count(*) FILTER (status = 'truncated') AS cut_off, count(*) FILTER (status = 'unknown') AS unknown,
  count(*) FILTER (status = 'running') AS running
FROM runs WHERE duplicate_of IS NULL GROUP BY origin"""
    with connect(home / "store" / "results.duckdb") as con:
        yield {row["origin"]: row for row in con.sql(sql).pl().to_dicts()}


def words(home: Path, page: str, **query: str) -> str:
    """Text of a page, without tags, in one line."""
    text = html.unescape(re.sub(r"<[^>]+>", " ", text_of(look_at(home, page, **query))))
    return re.sub(r"\s+", " ", text.replace("\xa0", " "))


def numbers(pattern: str, text: str) -> list[tuple[int, ...]]:
    """Numbers that each match of `pattern` captured."""
    found = [match if isinstance(match, tuple) else (match,) for match in re.findall(pattern, text)]
    return [tuple(int(number.replace(",", "")) for number in match) for match in found]


N = r"(\d[\d,]*)"


def test_every_page_counts_the_same_runs(home: Path, facts: dict[str, Facts]) -> None:
    health = words(home, "health")
    for origin, fact in facts.items():
        runs = words(home, "runs", origins=origin)
        (stated,) = numbers(rf"{N} of {N} runs? completed\.", runs) or [(fact["completed"], None)]
        assert stated == (fact["completed"], fact["runs"]), runs[:200]
        (tried,) = numbers(rf"{origin} {N} run attempts? of", words(home, "failures", origin=origin, sweep="*"))
        assert tried == (fact["runs"],)
        (of_health,) = numbers(rf"{origin} {N} runs?\b", health)
        assert of_health == (fact["runs"],)
        for of_origin in numbers(rf"of {N} {origin} runs\b", words(home, "overview", origin=origin)):
            assert of_origin == (fact["runs"],)


def test_every_page_says_the_same_of_failures(home: Path, facts: dict[str, Facts]) -> None:
    for origin, fact in facts.items():
        judged, failed = fact["completed"] + fact["failed"], fact["failed"]
        text = words(home, "failures", origin=origin, sweep="*")
        for said in numbers(rf"{N} of {N} runs? failed \(", text):
            assert said == (failed, judged)
        if failed:
            assert f"failed ({percent(failed / judged, 0)})".replace("\xa0", " ") in text
        else:
            assert "failed (" not in text
        if not judged:
            assert "No run can be judged yet" in text
        overview = words(home, "overview", origin=origin)
        for stopped in numbers(rf"{N} runs? counted as failed: the log stops", overview):
            assert stopped == (fact["cut_off"],)
        for unknown in numbers(rf"{N} runs? without evidence of an end", overview):
            assert unknown == (fact["unknown"],)
        assert numbers(rf"{N} still running", words(home, "runs", origins=origin)) in (
            [],
            [(fact["running"],)],
        )


def test_the_answer_on_best_configurations_is_that_of_the_view(home: Path, facts: dict[str, Facts]) -> None:
    for origin in facts:
        text = words(home, "best", origin=origin)
        match = re.search(
            rf"On (\d+) nodes?(?: with {N} GPUs?)?, (.+?) trains fastest with (.+?): ([\d.]+) % MFU", text
        )
        if match is None:
            continue
        sql = """SELECT layout, mfu, margin, chance_best, is_tie FROM best_configs
WHERE origin = $origin AND num_nodes = $nodes AND model = $model AND layout = $layout"""
        params = {"origin": origin, "nodes": int(match[1]), "model": match[3], "layout": match[4]}
        with connect(home / "store" / "results.duckdb") as con:
            winners = con.sql(sql, params=params).pl().to_dicts()
        assert f"{float(match[5]):.1f}" in {f"{100 * (row['mfu'] or 0):.1f}" for row in winners}, match[0]
        assert "−" not in text[match.start() : text.index(".", match.end())]
        if said := re.search(r"Chance that it is the best of .+?: (?:over |under )?(\d+) %", text):
            chances = {min(max(round(100 * row["chance_best"]), 1), 99) for row in winners if row["chance_best"]}
            assert int(said[1]) in chances


def test_no_page_fails(home: Path) -> None:
    for page in ("scaling", "estimator", "memory", "network", "frontier"):
        assert words(home, page)  # `look_at` fails with the page


@pytest.mark.parametrize("page", ["overview", "best", "failures", "runs", "health", "scaling", "memory", "network"])
def test_a_store_without_runs_claims_none(tmp_path_factory: pytest.TempPathFactory, page: str) -> None:
    home = make_real_home(tmp_path_factory.mktemp("none") / "home")
    text = words(home, page)
    assert not [found for found in numbers(rf"{N} (?:runs?|run attempts?)\b", text) if found != (0,)], text[:300]
