"""The views on a real DuckDB: small made-up stores for the rules, the bundled data for the published findings."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sweepscope import data
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_runs
from sweepscope.pipeline.ingest.published import load_published
from sweepscope.pipeline.store.publish import VIEW_FOLDER
from sweepscope.schemas import vocab
from sweepscope.schemas.registry import VIEWS
from tests.run_rows import Row, completed_frame, open_store, rows_of, run_row

PLAYBOOK = (
    "origin = 'published' AND seq_len = 4096 AND gbs_tokens = 1048576 AND accelerator = 'H100-SXM-80GB' "
    "AND model IN ('Llama 1.34B', 'Llama 3.57B', 'Llama 8.86B', 'Llama 80B')"
)
SLOW: Row = {"dp": 4, "tp": 2, "gas": 32}


def query(sql: str, *runs: Row, published: list[Row] | None = None) -> list[Row]:
    """Rows of a query on a store of a few completed runs."""
    return rows_of(open_store(completed_frame(*runs), pl.DataFrame(published) if published else None), sql)


def in_cells(cases: dict[str, list[Row]]) -> list[Row]:
    """The runs of all cases for one store, each case in a sweep and cells of its own: its name is sweep and model."""
    return [
        row | {"run_id": f"{case}: {row['run_id']}", "sweep": case, "model": case}
        for case, rows in cases.items()
        for row in rows
    ]


@pytest.fixture(scope="module")
def bare() -> Iterator[duckdb.DuckDBPyConnection]:
    with open_store(completed_frame()) as connection:
        yield connection


@pytest.fixture(scope="module")
def bundled() -> Iterator[duckdb.DuckDBPyConnection]:
    loaded = load_published(data.PUBLISHED)
    connection = open_store(loaded["runs"], loaded["published_runs"], estimates=estimate_runs(loaded["runs"]))
    yield connection
    connection.close()


@pytest.mark.parametrize("name", list(VIEWS))
def test_a_view_has_the_columns_of_its_schema(name: str, bare: duckdb.DuckDBPyConnection) -> None:
    frame = bare.sql(f"SELECT * FROM {name}").pl()
    assert tuple(frame.columns) == VIEWS[name].column_names
    assert frame.is_empty()


@pytest.mark.parametrize("name", list(VIEWS))
def test_a_view_has_the_types_and_the_key_of_its_schema(name: str, bundled: duckdb.DuckDBPyConnection) -> None:
    frame = bundled.sql(f"SELECT * FROM {name}").pl()
    # published runs have no wall time, NCCL output, samples, snapshots or texts of failures; nobody can repeat them;
    # other tests fill those views
    assert frame.height > 0 or name in (
        "lead_history",
        "plan_status",
        "version_changes",
        "stretched_runs",
        "retry_list",
        "nccl_findings",
        "nccl_traffic",
        "run_gpu_memory",
        "run_snapshots",
        "gpu_oom_reports",
        "run_files",
        "run_hosts",
        "nodes",
        "run_timeline",
        "run_notes",
        "run_costs",
    )
    assert {c: t for c, t in frame.schema.items() if t != VIEWS[name].polars_schema[c]} == {}
    assert frame.select(VIEWS[name].primary_key).is_duplicated().sum() == 0


def test_every_view_file_is_registered() -> None:
    assert {path.stem for path in VIEW_FOLDER.glob("*.sql")} == set(VIEWS)


def test_the_fastest_layout_wins_and_the_next_one_is_the_runner_up() -> None:
    (best,) = query(
        "SELECT * FROM best_configs",
        run_row("fast", tokens_per_s_per_gpu=40_000.0),
        run_row("slow", **SLOW, tokens_per_s_per_gpu=32_000.0),
        run_row("dead", dp=2, tp=4, gas=64, status="oom", tokens_per_s_per_gpu=None),
    )
    assert (best["run_id"], best["runner_up_run_id"]) == ("fast", "slow")
    assert best["margin"] == pytest.approx(0.25)
    assert not best["is_tie"]
    assert (best["runs_tried"], best["runs_completed"], best["layouts_completed"]) == (3, 2, 2)


def test_repeats_count_by_their_median() -> None:
    lucky = [run_row(f"lucky{i}", tokens_per_s_per_gpu=speed) for i, speed in enumerate((50_000.0, 30_000.0, 31_000.0))]
    (best,) = query("SELECT * FROM best_configs", *lucky, run_row("steady", **SLOW, tokens_per_s_per_gpu=32_000.0))
    assert best["run_id"] == "steady"
    assert best["runner_up_run_id"] == "lucky2"  # the run at the median stands for its layout
    assert best["is_tie"]  # 3 % ahead of a layout that varies by 65 %


def test_a_lead_within_the_noise_is_a_tie() -> None:
    cases: dict[str, tuple[list[float], list[float], bool]] = {
        "single within 1.4 %": ([100.0], [98.8], True),
        "single beyond 1.4 %": ([100.0], [98.0], False),
        "beyond its spread": ([100.0, 100.4], [98.5], False),
        "within its spread": ([100.0, 120.0], [106.0], True),
        "within the other's spread": ([100.0], [92.0, 103.0], True),
        "alike in each of many repeats": ([100.0, 100.1] * 20, [99.5], False),
    }
    runs = {
        case: [
            *(run_row(f"w{i}", tokens_per_s_per_gpu=speed) for i, speed in enumerate(winner)),
            *(run_row(f"s{i}", **SLOW, tokens_per_s_per_gpu=speed) for i, speed in enumerate(second)),
        ]
        for case, (winner, second, _) in cases.items()
    }
    # a store each: repeats of one cell tell of the noise of all on as many nodes
    best = [
        row for case in runs for row in query("SELECT model, is_tie FROM best_configs", *in_cells({case: runs[case]}))
    ]
    assert {row["model"]: row["is_tie"] for row in best} == {case: is_tie for case, (*_, is_tie) in cases.items()}


def _on(nodes: int) -> Row:
    return {"num_nodes": nodes, "num_gpus": 8 * nodes, "dp": nodes, "tp": 8, "gas": 128 // nodes}


def test_noise_is_pooled_by_nodes_cluster_and_framework_and_drawn_towards_the_bundled() -> None:
    def pair(name: str, apart: float, **changes: Any) -> list[Row]:
        speeds = (100.0, 100.0 * math.exp(apart))
        return [run_row(f"{name}{i}", tokens_per_s_per_gpu=speed, **changes) for i, speed in enumerate(speeds)]

    there = {**_on(16), "cluster": "North"}
    runs = {
        "repeated": pair("r", 0.2, **there, framework="nanotron"),
        "same framework": [run_row("a", **there, framework="nanotron")],
        "same cluster": [run_row("b", **there, framework="megatron")],
        "other cluster": [run_row("c", **{**there, "cluster": "South"}, framework="nanotron")],
        "other nodes": [run_row("d", **{**there, **_on(32)}, framework="nanotron")],
        "other origin": [run_row("e", **there, framework="nanotron", origin="simulated")],
        "incident": pair("i", 0.7, **{**there, **_on(4)}),
        "beside an incident": [run_row("f", **{**there, **_on(4)})],
    }
    found = query("SELECT model, run_noise, noise_basis, noise_repeats, repeats FROM ranked_layouts", *in_cells(runs))
    pooled = math.sqrt((4 * 0.05**2 + 0.2**2 / 2) / 5)
    expected = {
        "repeated": (pooled, "own_repeats", 1),
        "same framework": (pooled, "framework", 1),
        "same cluster": (pooled, "cluster", 1),
        "other cluster": (pooled, "nodes", 1),
        "other nodes": (0.10, "bundled", 0),
        "other origin": (0.05, "bundled", 0),
        "incident": (math.sqrt(0.7**2 / 2), "own_repeats", 0),
        "beside an incident": (0.02, "bundled", 0),
    }
    assert {row["model"]: (row["run_noise"], row["noise_basis"], row["noise_repeats"]) for row in found} == {
        case: (pytest.approx(noise), basis, repeats) for case, (noise, basis, repeats) in expected.items()
    }


def test_many_repeats_decide_against_the_bundled_noise() -> None:
    quiet = [run_row(f"r{i}", **_on(64), tokens_per_s_per_gpu=100.0 + i / 100) for i in range(41)]
    (best,) = query("SELECT run_noise, noise_repeats, repeat_speeds FROM ranked_layouts", *quiet)
    assert best["run_noise"] < 0.22 / 3
    assert best["noise_repeats"] == 40
    assert best["repeat_speeds"].split()[:2] == ["100", "100.01"]


def test_steps_that_differ_doubt_a_run_that_was_not_repeated() -> None:
    wild = run_row(
        "a", step_time_s=1.0, step_time_p10_s=0.5, step_time_p90_s=2.0, steps_logged=12, warmup_steps_dropped=2
    )
    (best,) = query("SELECT run_noise, noise_basis FROM ranked_layouts", wild)
    assert best == {"run_noise": pytest.approx(1.2533 * 1.5 / 2.563 / math.sqrt(10), rel=1e-3), "noise_basis": "steps"}


def test_a_single_layout_has_no_runner_up() -> None:
    (best,) = query(
        "SELECT margin, noise, is_tie, runner_up_run_id, repeats, repeat_spread FROM best_configs", run_row()
    )
    assert best == {
        "margin": None,
        "noise": None,
        "is_tie": False,
        "runner_up_run_id": None,
        "repeats": 1,
        "repeat_spread": None,
    }


def test_only_completed_comparable_own_runs_are_ranked() -> None:
    changes: dict[str, Row] = {
        "out of memory": {"status": "oom"},
        "unknown": {"status": "unknown"},
        "quarantined": {"quarantine_reason": "by hand"},
        "duplicate": {"duplicate_of": "elsewhere"},
        "no speed": {"tokens_per_s_per_gpu": None},
        "no batch": {"gbs": None, "gbs_tokens": None, "gas": None},
        "good": {},
    }
    ranked = query("SELECT model FROM ranked_layouts", *in_cells({case: [run_row(**c)] for case, c in changes.items()}))
    assert [row["model"] for row in ranked] == ["good"]


def test_an_unknown_accelerator_still_has_a_cell() -> None:
    runs = [run_row("a", accelerator=None), run_row("b", accelerator=None, **SLOW, tokens_per_s_per_gpu=1.0)]
    (best,) = query("SELECT * FROM best_configs", *runs)
    assert (best["accelerator"], best["runner_up_run_id"], best["runs_tried"]) == (None, "b", 2)


def test_variants_and_unknown_layouts_are_not_repeats_of_each_other() -> None:
    runs = [
        run_row("plain", tokens_per_s_per_gpu=100.0),
        run_row("async", tokens_per_s_per_gpu=120.0, variant="async TP"),
        run_row("u1", dp=None, tp=None, pp=None, cp=None, gas=None, mbs=None, tokens_per_s_per_gpu=90.0),
        run_row("u2", dp=None, tp=None, pp=None, cp=None, gas=None, mbs=None, tokens_per_s_per_gpu=80.0),
    ]
    ranked = query("SELECT run_id, repeats FROM ranked_layouts ORDER BY rank_in_cell", *runs)
    assert [row["run_id"] for row in ranked] == ["async", "plain", "u1", "u2"]
    assert {row["repeats"] for row in ranked} == {1}


def test_other_versions_and_clusters_are_not_repeats() -> None:
    cases: dict[str, tuple[str, list[str | None]]] = {
        f"{column} {values}": (column, list(values))
        for column in ("framework_version", "torch_version", "nccl_version", "cluster")
        for values in (("1.0", "2.0"), ("1.0", None), ("1.0", "1.0"), (None, None))
    }
    runs = {
        case: [
            run_row(f"{place}", tokens_per_s_per_gpu=speed, **{column: value})
            for place, (value, speed) in enumerate(zip(values, (16_388.0, 27_313.0), strict=True))
        ]
        for case, (column, values) in cases.items()
    }
    ranked = query("SELECT * FROM ranked_layouts ORDER BY model, rank_in_cell", *in_cells(runs))
    for case, (column, values) in cases.items():
        found = [(row[column], row["tokens_per_s_per_gpu"], row["repeats"]) for row in ranked if row["model"] == case]
        first, second = values
        if first == second:
            assert found == [(first, (16_388.0 + 27_313.0) / 2, 2)]
        else:
            assert found == [(second, 27_313.0, 1), (first, 16_388.0, 1)]


def test_a_lead_over_another_version_is_one_over_a_measurement_of_its_own() -> None:
    old = [run_row(f"old{i}", framework_version="1.0", tokens_per_s_per_gpu=16_388.0 + i) for i in range(2)]
    (best,) = query(
        "SELECT * FROM best_configs", *old, run_row("new", framework_version="2.0", tokens_per_s_per_gpu=27_313.0)
    )
    assert (best["run_id"], best["framework_version"], best["repeats"]) == ("new", "2.0", 1)
    assert best["runner_up_layout"] == best["layout"]
    assert best["margin"] == pytest.approx(27_313.0 / 16_388.5 - 1)
    assert (best["noise"] < 0.02, best["is_tie"], best["layouts_completed"]) == (True, False, 2)


def test_origins_never_share_a_cell() -> None:
    runs = [run_row("real"), run_row("made-up", origin="simulated", tokens_per_s_per_gpu=90_000.0)]
    best = query("SELECT origin, run_id, runner_up_run_id FROM best_configs ORDER BY origin", *runs)
    assert best == [
        {"origin": "measured", "run_id": "real", "runner_up_run_id": None},
        {"origin": "simulated", "run_id": "made-up", "runner_up_run_id": None},
    ]


_TRIED = st.lists(st.tuples(st.sampled_from([1, 2, 4, 8]), st.floats(1.0, 1e5)), min_size=1, max_size=12)


# A store takes a tenth of a second: few examples of several cells each.
@settings(max_examples=4, phases=(Phase.explicit, Phase.generate))
@given(st.lists(_TRIED, min_size=4, max_size=12))
def test_no_ranked_layout_beats_the_winner(cells: list[list[tuple[int, float]]]) -> None:
    runs = in_cells(
        {
            f"cell {cell}": [
                run_row(str(i), tp=tp, dp=8 // tp, gas=16 * tp, tokens_per_s_per_gpu=speed)
                for i, (tp, speed) in enumerate(tried)
            ]
            for cell, tried in enumerate(cells)
        }
    )
    with open_store(completed_frame(*runs).with_columns(quarantine_reason=pl.lit(None, pl.String))) as connection:
        found = rows_of(connection, "SELECT model, tokens_per_s_per_gpu AS top, runs_completed FROM best_configs")
    best = {row["model"]: row for row in found}
    assert len(best) == len(found) == len(cells)
    for cell, tried in enumerate(cells):
        medians = pl.DataFrame(tried, schema=["tp", "speed"], orient="row").group_by("tp").agg(pl.col("speed").median())
        assert best[f"cell {cell}"]["top"] == pytest.approx(medians["speed"].max())
        assert best[f"cell {cell}"]["runs_completed"] == len(tried)


def tried(nodes: int, *statuses: str, **changes: object) -> list[Row]:
    """Runs at a node count, one per status, that reached no throughput."""
    return [
        run_row(
            f"n{nodes}-{i}",
            num_nodes=nodes,
            num_gpus=8 * nodes,
            dp=8 * nodes,
            gas=16 // nodes,
            status=status,
            tokens_per_s_per_gpu=None,
            **changes,
        )
        for i, status in enumerate(statuses)
    ]


def test_an_empty_cell_says_what_happened() -> None:
    expected = {
        ("oom", "oom"): ("oom", "2 of 2 oom"),
        ("host_oom",): ("host_oom", "1 of 1 host_oom"),
        ("hang", "hang"): ("hang", "2 of 2 hang"),
        ("timeout",): ("timeout", "1 of 1 timeout"),
        ("cancelled",): ("cancelled", "1 of 1 cancelled"),
        ("node_fail", "preempted"): ("infra", "2 tried: 1 node_fail, 1 preempted"),
        ("failed",) * 3: ("failed", "3 of 3 failed"),
        ("oom", "oom", "hang"): ("failed", "3 tried: 2 oom, 1 hang"),
        ("oom", "running"): ("running", "2 tried: 1 oom, 1 running"),
        ("completed",): ("quarantined", "1 completed, none ranked: no throughput"),
    }
    runs = in_cells({" ".join(statuses): [run_row(), *tried(2, *statuses)] for statuses in expected})
    found = query("SELECT model, num_nodes, cell_state, cell_reason, runs_tried FROM grid_cells", *runs)
    cells = {(row["model"], row["num_nodes"]): tuple(row.values())[2:] for row in found}
    for statuses, (state, reason) in expected.items():
        assert cells.pop((" ".join(statuses), 1)) == ("measured", None, 1)
        assert cells.pop((" ".join(statuses), 2)) == (state, reason, len(statuses))
    assert cells == {}


def test_a_quarantined_cell_names_the_reason() -> None:
    (cell,) = query("SELECT * FROM grid_cells", run_row(quarantine_reason="by hand"))
    assert (cell["cell_state"], cell["cell_reason"]) == ("quarantined", "1 completed, none ranked: by hand")
    assert (cell["runs_completed"], cell["runs_quarantined"]) == (0, 1)


def test_cells_and_winners_count_completed_runs_alike() -> None:
    silent = run_row("silent", **SLOW, tokens_per_s_per_gpu=None)
    runs = [run_row("ranked"), silent, run_row("bad", quarantine_reason="by hand")]
    (cell,) = query("SELECT runs_tried, runs_completed, runs_quarantined FROM grid_cells", *runs)
    (best,) = query("SELECT runs_completed FROM best_configs", *runs)
    assert (cell["runs_tried"], cell["runs_completed"], cell["runs_quarantined"]) == (3, 1, 2)
    assert best["runs_completed"] == cell["runs_completed"]


def big(run_id: str, nodes: int, **changes: object) -> Row:
    """A run of an 80B model: 80e9 parameters hold 16 bytes each."""
    return run_row(
        run_id,
        model="Llama 80B",
        num_layers=80,
        hidden_size=8192,
        num_heads=64,
        num_kv_heads=64,
        ffn_hidden_size=28_672,
        tie_word_embeddings=False,
        num_nodes=nodes,
        num_gpus=8 * nodes,
        dp=8 * nodes,
        gas=16 // nodes,
        **changes,
    )


def test_states_that_exceed_the_card_are_predicted_not_to_fit() -> None:
    runs = [big("small", 1, status="failed", tokens_per_s_per_gpu=None), big("large", 16, tokens_per_s_per_gpu=600.0)]
    small, large = query("SELECT * FROM grid_cells ORDER BY num_nodes", *runs)
    assert (small["cell_state"], large["cell_state"]) == ("wont_fit", "measured")
    assert small["cell_reason"] == "168 GiB of states per GPU, 79.6 GiB usable; 1 tried"


def test_seen_memory_errors_outrank_the_prediction() -> None:
    (cell,) = query("SELECT cell_state FROM grid_cells", big("small", 1, status="oom", tokens_per_s_per_gpu=None))
    assert cell["cell_state"] == "oom"


def test_a_grid_spans_models_and_nodes_of_one_sweep_only() -> None:
    other: Row = {"model": "Other 1B", "sweep": "other"}
    runs = [
        run_row("a"),
        *tried(2, "oom"),
        run_row("b", model="Second 1B"),
        run_row("c", **other),
    ]
    cells = query("SELECT model, num_nodes, cell_state FROM grid_cells ORDER BY ALL", *runs)
    assert [(c["model"], c["num_nodes"], c["cell_state"]) for c in cells] == [
        ("Llama 1.34B", 1, "measured"),
        ("Llama 1.34B", 2, "oom"),
        ("Other 1B", 1, "measured"),
        ("Second 1B", 1, "measured"),
        ("Second 1B", 2, "not_run"),
    ]


def at_nodes(nodes: int, speed: float, **changes: object) -> Row:
    return run_row(
        f"{nodes}-{speed}",
        **{
            "num_nodes": nodes,
            "num_gpus": 8 * nodes,
            "dp": 8 * nodes,
            "gas": 16 // nodes,
            "tokens_per_s_per_gpu": speed,
        }
        | changes,
    )


def test_efficiency_is_measured_against_the_smallest_node_count() -> None:
    line = query(
        "SELECT * FROM scaling_efficiency WHERE strategy = 'best' ORDER BY num_nodes",
        at_nodes(2, 40_000.0),
        at_nodes(4, 36_000.0),
        at_nodes(8, 20_000.0),
    )
    assert [row["baseline_num_nodes"] for row in line] == [2, 2, 2]
    assert {(row["baseline_run_id"], row["baseline_num_gpus"]) for row in line} == {("2-40000.0", 16)}
    assert [row["scaling_efficiency"] for row in line] == pytest.approx([1.0, 0.9, 0.5])
    assert [row["ideal_tokens_per_s"] for row in line] == pytest.approx([640_000, 1_280_000, 2_560_000])


def test_efficiency_is_the_ratio_of_speeds_where_mfu_says_otherwise() -> None:
    """A run that is labelled as the same model may have another shape, and then another number of FLOPs per token."""
    line = query(
        "SELECT mfu / baseline_mfu AS of_mfu, scaling_efficiency FROM scaling_efficiency WHERE strategy = 'best' "
        "ORDER BY num_nodes",
        at_nodes(1, 1000.0),
        at_nodes(2, 1200.0, num_layers=15, params=None),
    )
    assert [row["scaling_efficiency"] for row in line] == [1.0, 1.2]
    assert line[1]["of_mfu"] < 1.2


def test_of_equal_numbers_of_gpus_the_one_on_fewer_nodes_is_the_baseline() -> None:
    runs = [at_nodes(1, 1000.0), at_nodes(2, 900.0, num_gpus=8, gpus_per_node=4, dp=8, gas=16), at_nodes(4, 800.0)]
    rows = query("SELECT DISTINCT baseline_run_id FROM scaling_efficiency WHERE strategy = 'best'", *runs)
    assert rows == [{"baseline_run_id": "1-1000.0"}]


def test_each_strategy_has_its_own_line() -> None:
    runs = [
        at_nodes(1, 40_000.0),
        at_nodes(2, 30_000.0),
        at_nodes(2, 35_000.0, dp=8, tp=2, gas=16),
        at_nodes(4, 20_000.0, dp=None, tp=None, pp=None, gas=None, mbs=None, cp=None),
    ]
    lines = query("SELECT strategy, num_nodes, scaling_efficiency AS eta FROM scaling_efficiency ORDER BY ALL", *runs)
    assert [(row["strategy"], row["num_nodes"], round(row["eta"], 3)) for row in lines] == [
        ("DP", 1, 1.0),
        ("DP", 2, 0.75),
        ("DP+TP", 2, 1.0),
        ("best", 1, 1.0),
        ("best", 2, 0.875),
        ("best", 4, 0.5),  # a layout that is not known has no strategy, but may still be the best
    ]


def test_efficiency_needs_no_mfu() -> None:
    line = query(
        "SELECT mfu, scaling_efficiency FROM scaling_efficiency WHERE strategy = 'best' ORDER BY num_nodes",
        at_nodes(1, 100.0, accelerator="CPU"),
        at_nodes(2, 80.0, accelerator="CPU"),
    )
    assert line == [{"mfu": None, "scaling_efficiency": 1.0}, {"mfu": None, "scaling_efficiency": 0.8}]


def audits(*cases: Row) -> list[dict[str, str]]:
    """Findings with their details for each run, all in one store."""
    runs = [row | {"run_id": str(case), "sweep": f"sweep {case}"} for case, row in enumerate(cases)]
    found: list[dict[str, str]] = [{} for _ in cases]
    for row in query("SELECT run_id, finding, detail FROM mfu_audit", *runs):
        found[int(row["run_id"])][row["finding"]] = row["detail"]
    return found


def audit(run: Row) -> dict[str, str]:
    (found,) = audits(run)
    return found


def test_finds_what_a_printed_mfu_hides() -> None:
    cases: list[tuple[Row, str]] = [
        # 1.34B: the shared embedding is 268M of 1,342M parameters, so counting it twice gives 1.167 x
        ({"mfu_logged": 0.4560}, "tied_embedding_counted_twice"),
        ({"mfu_logged": 0.50}, "logged_mfu_differs"),
        ({"tflops_per_gpu_logged": 300.0}, "logged_tflops_differ"),  # 387 recomputed
        ({"mfu_logged": 1.5}, "mfu_above_100"),
        ({"hfu": 0.2}, "hfu_below_mfu"),
        ({"num_gpus": 16, "num_nodes": 2}, "layout_mismatch"),
        ({"gas": 99}, "batch_mismatch"),
        ({"accelerator": "Quadro"}, "not_recomputable"),
    ]
    for (changes, finding), found in zip(cases, audits(*(run_row(**changes) for changes, _ in cases)), strict=True):
        assert finding in found, changes


# The 1.34B shape with an untied vocabulary of 100,000, by hand: 268,435,456 (attention) + 805,306,368 (MLP) +
# 409,600,000 (embeddings) + 67,584 (norms) = 1,483,409,408 parameters; 12Lhs = 1,610,612,736, so 10,511,069,184 FLOPs
# per token, and at 40,000 tokens/s/GPU 420.44 TFLOP/s: 42.51 % of the H100's 989.
_UNTIED: Row = {"vocab_size": 100_000, "tie_word_embeddings": False, "model": "hand-made"}


def test_another_convention_is_named() -> None:
    cases = {
        0.3600: "6N, without attention",  # 8,900,456,448 of 10,511,069,184 = 0.8468
        0.3925: "6N + 6Lhs, attention as causal, at half",  # 0.9234
        0.3754: "an embedding matrix left out",  # 6 x 204,800,000 less = 0.8831
        0.5668: "recomputation counted: that is HFU",  # 4/3
        # 72 x 16 x 2048^2 x (1 + 4096/12288 + 100000/393216) = 7,671,249,000 = 0.7298
        0.3103: "72Lh2(1 + s/6h + V/12Lh)",
    }
    found = audits(*(run_row(**_UNTIED, mfu_logged=printed) for printed in cases))
    for words, findings in zip(cases.values(), found, strict=True):
        assert list(findings) == ["other_convention"], words
        assert words in findings["other_convention"]


def test_a_wrong_peak_is_named() -> None:
    cases: list[tuple[Row, str]] = [
        # every device divided by 989.5: on an A100, 105.11 TFLOP/s are 33.69 % and print as 10.62 %
        (
            {
                "framework": "picotron",
                "accelerator": "A100-SXM-80GB",
                "tokens_per_s_per_gpu": 10_000.0,
                "mfu_logged": 0.1062,
            },
            "divides by 989.5 TFLOP/s, which picotron takes for every device; the dense peak of A100-SXM-80GB",
        ),
        ({"framework": "picotron", "accelerator": "CPU", "mfu_logged": 0.0001}, "CPU has no known peak"),
        # torchtitan knows its card's name or takes the A100's peak, and prints which
        (
            {
                "framework": "torchtitan",
                "peak_tflops_logged": 312.0,
                "tokens_per_s_per_gpu": 20_000.0,
                "mfu_logged": 0.6738,
            },
            "divides by 312.0 TFLOP/s; the dense peak of H100-SXM-80GB at bf16 is 989.0",
        ),
        ({"mfu_logged": 0.2126}, "twice the dense peak"),
        ({"mfu_logged": 0.3370, "tokens_per_s_per_gpu": 10_000.0}, "the A100's 312 TFLOP/s"),
        # 420.44 TFLOP/s are 21.25 % of the 8-bit peak 1,979 and 42.51 % of the 16-bit one
        ({"precision": "fp8", "mfu_logged": 0.4251}, "the 16-bit peak"),
    ]
    found = audits(*(run_row(**_UNTIED | changes) for changes, _ in cases))
    for (changes, words), findings in zip(cases, found, strict=True):
        assert words in findings["wrong_peak"], changes
        assert not {"logged_mfu_differs", "other_convention"} & set(findings)


def test_the_right_peak_and_convention_leave_no_finding() -> None:
    plain = [
        run_row(mfu_logged=0.3909),
        run_row(tflops_per_gpu_logged=516.0, recompute="full"),  # 4/3 of the model's FLOPs
        run_row(status="oom", tokens_per_s_per_gpu=None),  # failed before its first step, and claims nothing
        run_row(**_UNTIED, mfu_logged=0.4251),
        run_row(**_UNTIED, mfu_logged=0.4249, framework="picotron"),  # 989.5 for 989
        run_row(**_UNTIED, mfu_logged=0.4251, peak_tflops_logged=989.0, framework="torchtitan"),
    ]
    assert audits(*plain) == [{}] * len(plain)


def test_an_mfu_that_nothing_explains_is_said_to_be_so() -> None:
    found = audit(run_row(**_UNTIED, mfu_logged=0.47))
    assert list(found) == ["logged_mfu_differs"]
    assert "the peak would have to be 895 TFLOP/s" in found["logged_mfu_differs"]  # 420.44 / 0.47


def test_what_cannot_be_recomputed_names_the_missing_columns() -> None:
    cases: list[tuple[Row, str]] = [
        (
            {"tokens_per_s_per_gpu": None, "gbs_tokens": None, "gbs": None, "seq_len": None},
            "not computed: no throughput; missing: step_time_s, tokens_per_s, gbs_tokens",
        ),
        (
            {"vocab_size": None, "num_kv_heads": None, "params": None},
            "not computed: parameters unknown; missing: params, num_kv_heads, vocab_size",
        ),
        (
            {"accelerator": None, "mfu_logged": 0.5},
            "not computed: accelerator unknown; the printed MFU implies a peak of 841 TFLOP/s",
        ),
        ({"accelerator": "Quadro"}, "not computed: Quadro is not in the accelerators table"),
        ({"precision": "fp32"}, "not computed: no fp32 peak for H100-SXM-80GB"),
    ]
    found = audits(*(run_row(**_UNTIED | changes) for changes, _ in cases))
    assert [findings["not_recomputable"] for findings in found] == [reason for _, reason in cases]


def test_a_large_models_embedding_explains_nothing() -> None:
    # Counting the embedding twice changes the MFU of a 530B model by 0.2 %: within any rounding.
    run = run_row(
        model="MT-NLG 530B",
        num_layers=105,
        hidden_size=20_480,
        num_heads=128,
        num_kv_heads=128,
        ffn_hidden_size=81_920,
        gated_mlp=False,
        vocab_size=51_200,
        tokens_per_s_per_gpu=100.0,
    )
    exact = completed_frame(run)["mfu"].item()
    assert audit(run | {"mfu_logged": exact}) == {}


def test_duplicates_are_judged_only_as_claims() -> None:
    runs = [
        run_row("fast", tokens_per_s_per_gpu=40_000.0, mfu_logged=0.3909),
        run_row("slow", **SLOW, tokens_per_s_per_gpu=39_000.0, mfu_logged=0.4446),
        run_row("claim", **SLOW, tokens_per_s_per_gpu=39_000.0, mfu_logged=0.4446, duplicate_of="the sweep"),
    ]
    found = query(
        "SELECT run_id, finding FROM mfu_audit ORDER BY ALL",
        *runs,
        published=[{"run_id": "claim", "is_claimed_best": True}],
    )
    assert [(row["run_id"], row["finding"]) for row in found] == [
        ("claim", "claimed_best_not_fastest"),
        ("slow", "tied_embedding_counted_twice"),
    ]


def test_a_claim_is_held_against_its_own_number_of_accelerators() -> None:
    runs = [
        run_row("whole node", tokens_per_s_per_gpu=40_000.0),
        run_row("half a node", num_gpus=4, gpus_per_node=4, dp=4, gas=32, tokens_per_s_per_gpu=50_000.0),
    ]
    claims = [{"run_id": run["run_id"], "is_claimed_best": True} for run in runs]
    assert query("SELECT * FROM mfu_audit", *runs, published=claims) == []


def test_playbook_grid_has_26_measured_cells_and_2_typed_ones(bundled: duckdb.DuckDBPyConnection) -> None:
    cells = rows_of(bundled, f"SELECT * FROM grid_cells WHERE {PLAYBOOK} ORDER BY model, num_nodes")
    assert [cell["cell_state"] for cell in cells].count("measured") == 26
    empty = [(c["model"], c["num_nodes"], c["cell_state"], c["cell_reason"]) for c in cells if c["run_id"] is None]
    assert empty == [
        ("Llama 80B", 1, "wont_fit", "168 GiB of states per GPU, 79.6 GiB usable; 57 tried"),
        ("Llama 80B", 2, "wont_fit", "84 GiB of states per GPU, 79.6 GiB usable; 87 tried"),
    ]
    assert {cell["sweeps"] for cell in cells} == {"ultrascale_playbook_all_runs"}


def test_every_playbook_winner_is_the_fastest_ranked_run_of_its_cell(bundled: duckdb.DuckDBPyConnection) -> None:
    cells = rows_of(
        bundled,
        f"""SELECT b.model, b.num_nodes, w.tokens_per_s_per_gpu AS winner, max(r.tokens_per_s_per_gpu) AS fastest
        FROM (SELECT * FROM best_configs WHERE {PLAYBOOK}) AS b
        JOIN runs AS w USING (run_id)
        JOIN runs AS r
            ON r.origin = b.origin AND r.model = b.model AND r.num_nodes = b.num_nodes AND r.seq_len = b.seq_len
            AND r.gbs_tokens = b.gbs_tokens AND r.accelerator = b.accelerator
        WHERE r.status = 'completed' AND r.quarantine_reason IS NULL
        GROUP BY ALL""",
    )
    assert len(cells) == 26
    assert all(cell["winner"] == cell["fastest"] for cell in cells)


def test_audit_finds_the_seven_cells_that_the_playbook_misjudged(bundled: duckdb.DuckDBPyConnection) -> None:
    found = rows_of(bundled, "SELECT * FROM mfu_audit WHERE finding = 'claimed_best_not_fastest' ORDER BY ALL")
    assert sorted((row["model"], row["num_nodes"]) for row in found) == [
        ("Llama 1.34B", 1),
        ("Llama 1.34B", 2),
        ("Llama 1.34B", 4),
        ("Llama 1.34B", 8),
        ("Llama 3.57B", 2),
        ("Llama 3.57B", 4),
        ("Llama 3.57B", 8),
    ]
    assert all("counts the tied embedding twice" in row["detail"] for row in found)


def test_audit_finds_the_fourteen_mislabelled_runs(bundled: duckdb.DuckDBPyConnection) -> None:
    found = rows_of(bundled, "SELECT * FROM mfu_audit WHERE finding = 'label_shape_mismatch'")
    assert len(found) == 14
    assert {row["model"] for row in found} == {"Llama 80B"}
    assert all("70.6B" in row["detail"] and row["mfu_ratio"] == pytest.approx(1, abs=0.001) for row in found)


def test_audit_reports_exactly_the_runs_that_count_the_embedding_twice(bundled: duckdb.DuckDBPyConnection) -> None:
    noted, found = (
        rows_of(
            bundled,
            """SELECT run_id FROM published_runs
        WHERE dataset = 'ultrascale_playbook_all_runs' AND contains(notes, 'tied embedding twice')""",
        ),
        rows_of(bundled, "SELECT run_id FROM mfu_audit WHERE finding = 'tied_embedding_counted_twice'"),
    )
    assert len(noted) == 794
    assert {row["run_id"] for row in noted} == {row["run_id"] for row in found}


def test_audit_words_are_documented(bundled: duckdb.DuckDBPyConnection) -> None:
    words = {row["finding"] for row in rows_of(bundled, "SELECT DISTINCT finding FROM mfu_audit")}
    assert words <= set(vocab.FINDING)


def test_cell_states_are_documented(bundled: duckdb.DuckDBPyConnection) -> None:
    words = {row["cell_state"] for row in rows_of(bundled, "SELECT DISTINCT cell_state FROM grid_cells")}
    assert words <= set(vocab.CELL_STATE)


def test_frontier_keeps_rows_that_were_rejected_as_runs() -> None:
    claim = {
        "run_id": "gone",
        "dataset": "frontier_configs",
        "model": "GPT 1T",
        "num_gpus": 3072,
        "tp": 8,
        "mfu_pct": 51.4,
    }
    (row,) = query("SELECT model, num_gpus, tp, mfu, mfu_logged FROM frontier", published=[claim])
    assert row == {"model": "GPT 1T", "num_gpus": 3072, "tp": 8, "mfu": None, "mfu_logged": 0.514}


def test_frontier_tells_a_recomputed_mfu_from_a_published_one() -> None:
    claim = {"run_id": "a1", "dataset": "frontier_configs", "model": "Llama 1.34B", "mfu_pct": 40.0}
    (row,) = query("SELECT mfu, mfu_logged FROM frontier", run_row("a1"), published=[claim])
    assert row == {"mfu": pytest.approx(0.3909, abs=1e-4), "mfu_logged": 0.4}


def test_frontier_keeps_mfu_and_hfu_apart(bundled: duckdb.DuckDBPyConnection) -> None:
    palm = rows_of(bundled, "SELECT mfu_logged, hfu FROM frontier WHERE model = 'PaLM 540B' ORDER BY mfu_logged")
    assert [(row["mfu_logged"], row["hfu"]) for row in palm] == [
        (pytest.approx(0.462), pytest.approx(0.578)),
        (None, 0.578),
    ]


def test_views_answer_at_once_on_a_hundred_thousand_runs(bundled: duckdb.DuckDBPyConnection) -> None:
    playbook = bundled.sql("SELECT * FROM runs WHERE sweep = 'ultrascale_playbook_all_runs'").pl()
    copies = [
        playbook.with_columns(
            run_id=pl.col("run_id") + f"-{i}", sweep=pl.lit(f"copy {i}"), gbs_tokens=pl.col("gbs_tokens") * (1 + i % 10)
        )
        for i in range(30)
    ]
    connection = open_store(pl.concat(copies))
    for name in VIEWS:
        started = time.process_time()  # of all threads: a busy machine must not fail it
        connection.sql(f"SELECT * FROM {name}").pl()
        assert time.process_time() - started < 20, name  # 0.02 to 0.4 s


def test_residuals_name_the_patterns_that_cost_most(bundled: duckdb.DuckDBPyConnection) -> None:
    rows = rows_of(
        bundled,
        "SELECT split_part(pattern, ' · ', 1) AS lies, median(time_ratio) AS ratio, "
        "median(hardware_time_ratio) AS slowdown, avg(is_penalised::INT) AS share "
        "FROM estimator_residuals WHERE sweep = 'ultrascale_playbook_all_runs' GROUP BY ALL",
    )
    found = {row["lies"]: row for row in rows}
    # ESTIMATOR.md: pipelines over nodes are most often far slower than the hardware allows, in a node not. The estimate
    # knows the launch stalls of that framework, so that most runs are near it; those that are not lie over nodes, too.
    assert found["PP over nodes"]["slowdown"] > 2
    assert found["PP in a node"]["slowdown"] < 1.1
    assert found["TP in a node"]["slowdown"] < 1.1
    assert all(row["ratio"] == pytest.approx(1.05, abs=0.1) for row in rows)
    assert found["PP over nodes"]["share"] > 3 * found["TP in a node"]["share"]
