"""Rules that views, pages and users' own queries share, called as anybody would call them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
import pytest

from sweepscope.pipeline.store.publish import MACRO_FOLDER, VIEW_FOLDER, macros
from sweepscope.schemas.thresholds import THRESHOLDS
from sweepscope.schemas.vocab import CELL_STATE, STATUS


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(macros())
        yield connection


def call(con: duckdb.DuckDBPyConnection, text: str, *values: object) -> object:
    (row,) = con.execute(f"SELECT {text}", list(values)).fetchall()
    return row[0]


@pytest.mark.parametrize(
    ("case", "state"),  # a winner, the statuses, bytes of states, bytes of the card
    [
        ((True, ["oom", "completed"], 200, 100), "measured"),
        ((False, ["completed", "running"], 10, 100), "running"),
        ((False, ["completed", "oom"], 200, 100), "quarantined"),
        ((False, ["oom"], 200, 100), "oom"),  # seen, which is worth more than predicted
        ((False, ["oom", "crash"], 91, 100), "wont_fit"),
        ((False, [], 91, 100), "wont_fit"),
        ((False, [], 90, 100), "not_run"),
        ((False, None, None, 100), "not_run"),
        ((False, ["oom", "hang"], 10, 100), "failed"),
        ((False, ["node_fail", "preempted"], 10, None), "infra"),
        ((False, ["nccl_error"], 10, 100), "infra"),
        ((False, ["host_oom"], 10, 100), "host_oom"),
        ((False, ["hang"], 10, 100), "hang"),
        ((False, ["timeout"], 10, 100), "timeout"),
        ((False, ["cancelled"], 10, 100), "cancelled"),
        ((False, ["crash"], 10, 100), "failed"),
    ],
)
def test_the_state_of_a_cell(con: duckdb.DuckDBPyConnection, case: tuple[object, ...], state: str) -> None:
    assert call(con, "cell_state_of($1, $2::VARCHAR[], $3::DOUBLE, $4::BIGINT)", *case) == state


@pytest.mark.parametrize("status", STATUS)
def test_every_status_leads_to_a_known_state(con: duckdb.DuckDBPyConnection, status: str) -> None:
    assert call(con, "cell_state_of(false, [$1]::VARCHAR[], NULL, NULL)", status) in CELL_STATE


@pytest.mark.parametrize(
    ("figure", "resolution"),
    [
        (41_200.0, 100 / 41_200),  # 41.2K
        (0.14, 0.01 / 0.14),
        (555.482, 0.001 / 555.482),
        (40_000.0, 10_000 / 40_000),  # zeros at the end look like missing digits
        (0.0, None),
        (None, None),
    ],
)
def test_the_last_printed_digit(con: duckdb.DuckDBPyConnection, figure: float | None, resolution: float | None) -> None:
    found = call(con, "printed_resolution($1::DOUBLE)", figure)
    assert found == (None if resolution is None else pytest.approx(resolution))


def test_a_speed_is_as_precise_as_what_it_was_computed_from(con: duckdb.DuckDBPyConnection) -> None:
    # 1,048,576 tokens in 3.1 s on 8 GPUs: the step time has two digits, and so has the speed
    speed = 1_048_576 / 3.1 / 8
    computed = call(con, "speed_resolution($1, $2, 8, 3.1, 1048576)", speed, speed * 8)
    assert computed == pytest.approx(0.1 / 3.1)
    logged = call(con, "speed_resolution(42281.29, 338250.32, 8, 3.1, 1048576)")
    assert logged == pytest.approx(0.01 / 42281.29)


@pytest.mark.parametrize(
    ("spreads", "resolutions", "noise"),
    [
        ((None, None), (0.002, 0.002), 0.01),  # no repeats: nothing is known
        ((0.0, None), (0.002, 0.003), 0.003),
        ((0.04, 0.0), (0.002, 0.003), 0.04),
        ((0.0, 0.0), (0.25, 0.25), 0.01),  # never more doubt than without repeats
    ],
)
def test_equal_printed_figures_are_not_equal_speeds(
    con: duckdb.DuckDBPyConnection, spreads: tuple[float | None, ...], resolutions: tuple[float, ...], noise: float
) -> None:
    text = "lead_noise($1::DOUBLE, $2::DOUBLE, $3::DOUBLE, $4::DOUBLE)"
    assert call(con, text, *spreads, *resolutions) == pytest.approx(noise, abs=1e-8)


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=lambda threshold: threshold.name)
def test_thresholds_have_one_home(con: duckdb.DuckDBPyConnection, threshold: object) -> None:
    name, value = getattr(threshold, "name"), getattr(threshold, "value")  # noqa: B009 - an id function hides the type
    assert call(con, f"{name}()") == value


def test_views_decide_by_the_thresholds_and_by_no_numbers_of_their_own() -> None:
    texts = {path: path.read_text() for folder in (VIEW_FOLDER, MACRO_FOLDER) for path in folder.glob("*.sql")}
    whole = "\n".join(texts.values())
    assert not [threshold.name for threshold in THRESHOLDS if f"{threshold.name}()" not in whole]
    judged = re.compile(r"[<>]=? *-?\d*\.\d+")
    assert not [(name, line) for name, text in texts.items() for line in text.splitlines() if judged.search(line)]
