"""Rules that views, pages and users' own queries share, called as anybody would call them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import log
from statistics import NormalDist
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.data import PUBLISHED
from sweepscope.pipeline.store.publish import MACRO_FOLDER, VIEW_FOLDER, macros
from sweepscope.schemas.thresholds import THRESHOLDS
from sweepscope.schemas.vocab import CELL_STATE, STATUS


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(macros())
        yield connection


def call(con: duckdb.DuckDBPyConnection, text: str, *values: object) -> Any:
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


def test_the_normal_distribution(con: duckdb.DuckDBPyConnection) -> None:
    for z in (-9.0, -2.5, -0.3, 0.0, 0.3, 1.96, 9.0):
        assert call(con, "normal_below($1::DOUBLE)", z) == pytest.approx(NormalDist().cdf(z), abs=1e-7)


@pytest.mark.parametrize(
    ("nodes", "noise"), [(None, 0.01), (1, 0.01), (16, 0.05), (24, 0.079), (64, 0.22), (4096, 0.22)]
)
def test_noise_without_any_repeat_grows_with_the_nodes(
    con: duckdb.DuckDBPyConnection, nodes: int | None, noise: float
) -> None:
    assert call(con, "noise_of_nodes($1::BIGINT)", nodes) == pytest.approx(noise, rel=0.06)


def test_the_bundled_noise_is_what_twins_of_the_bundled_sweep_differ_by(con: duckdb.DuckDBPyConnection) -> None:
    twins = pl.read_csv(PUBLISHED / "ultrascale_playbook_all_runs.csv.gz", infer_schema_length=None)
    twins = twins.filter(pl.col("status") == "success", pl.col("tokens_per_s_per_gpu") > 0).pivot(
        "zero_stage_or_fsdp",
        index=["model", "num_nodes", "dp", "tp", "pp", "grad_accum", "micro_batch_size", "seq_len"],
        values="tokens_per_s_per_gpu",
        aggregate_function="max",
    )
    apart = twins.select("num_nodes", apart=(pl.col("zero1") / pl.col("zero0")).log().abs()).drop_nulls()
    near = apart.filter(pl.col("apart") < log(1.5)).group_by("num_nodes").agg(pl.col("apart").median())
    found = dict(near.rows()) | {64: apart.filter(num_nodes=64)["apart"].median()}
    for nodes, bundled in zip((1, 2, 4, 8, 16, 32, 64), call(con, "bundled_noise()"), strict=True):
        assert float(bundled) == pytest.approx(found[nodes], rel=0.5), nodes


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(1.0, 1e6), st.floats(1e-2, 0.5)), min_size=1, max_size=8))
def test_chances_of_the_layouts_of_a_cell_sum_to_one(layouts: list[tuple[float, float]]) -> None:
    with duckdb.connect() as connection:
        connection.execute(macros())
        chances = []
        for place in range(len(layouts)):
            in_turn = [layouts[place], *layouts[:place], *layouts[place + 1 :]]
            speeds, noises = zip(*in_turn, strict=True)
            chances.append(call(connection, "chance_of_first($1::DOUBLE[], $2::DOUBLE[])", list(speeds), list(noises)))
    # Each is a sum over a grid as fine as its own noise, which is coarse for a rival whose noise is a fiftieth.
    assert sum(chances) == pytest.approx(1, abs=0.08)
    assert all(0 <= chance <= 1 for chance in chances)


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
