"""The size of a job by the lines that torch prints of its processes, beside those of any trainer."""

from __future__ import annotations

from tests.pipeline.ingest_in_memory import run_of

STEPS = "".join(f"Iteration {step}: loss={9 - step / 9:.4f}\n" for step in range(20))


def warnings(ranks: range, label: str = "") -> str:
    line = "[W507 22:29:37.600482518 ProcessGroupNCCL.cpp:1250] Warning: process group has NOT been destroyed"
    return "".join(f"{label}[rank{rank}]:{line}\n" for rank in ranks)


def test_each_rank_that_torch_warns_of_is_a_process() -> None:
    assert run_of(STEPS + warnings(range(8)))["num_gpus"] == 8


def test_ranks_of_which_some_are_missing_count_nothing() -> None:
    assert run_of(STEPS + warnings(range(4, 8))).get("num_gpus") is None
    assert run_of(STEPS + warnings(range(1))).get("num_gpus") is None


def test_a_stated_size_counts_more_than_the_ranks_of_one_node() -> None:
    assert run_of(f"world size: 16\n{STEPS}{warnings(range(8))}")["num_gpus"] == 16
    assert run_of(f"Number of nodes: 2\n{STEPS}{warnings(range(8))}").get("num_gpus") is None


def test_nodes_of_torchs_barrier_are_processes() -> None:
    line = "INFO - Rank 0: Completed store-based barrier for key:store_based_barrier_key:1 with 5 nodes.\n"
    run = run_of(line + STEPS)
    assert (run["num_gpus"], run.get("num_nodes")) == (5, None)


def test_launchers_of_several_ranks_each_are_nodes() -> None:
    run = run_of(STEPS + warnings(range(4), "0: ") + warnings(range(4, 8), "1: "))
    assert (run["num_gpus"], run["num_nodes"]) == (8, 2)
    run = run_of(STEPS + warnings(range(4), "gpu-a-1: ") + warnings(range(4, 8), "gpu-a-2: "))
    assert (run["num_gpus"], run["num_nodes"]) == (8, 2)


def test_a_task_per_rank_is_no_node_per_rank() -> None:
    run = run_of(STEPS + "".join(warnings(range(rank, rank + 1), f"{rank}: ") for rank in range(4)))
    assert (run["num_gpus"], run.get("num_nodes")) == (4, None)


def test_errors_of_the_ranks_that_wait_for_another_count_nothing() -> None:
    errors = warnings(range(7)).replace(":[W507", ":[E507")
    assert run_of(STEPS + errors).get("num_gpus") is None
