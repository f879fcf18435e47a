"""Composer's console blocks: one metric per line below a header."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.text import lines
from tests.pipeline.logs.logs import run_of, tables_of


def block(batch: int, loss: float, header: str = "[batch={}/9]:") -> str:
    return (
        f"{header.format(batch)}\n\t Train time/batch: {batch - 1}\n\t Train memory/reserved_mem: 20.5000\n"
        f"\t Train loss/train/total: {loss:.4f}\n\t Train throughput/batches_per_sec: 0.2500\n"
        "\t Train throughput/tokens_per_sec: 4096.0000\n\t Train throughput/device/tokens_per_sec: 512.0000\n"
        "\t Train throughput/device/flops_per_sec: 125000000000000.0000\n\t Train throughput/device/mfu: 0.4000\n"
    )


def test_a_block_is_one_step(tmp_path: Path) -> None:
    steps = tables_of(tmp_path, block(1, 12.5) + "train  11%|#  | 1/9\r\n" + block(2, 12.25))["steps"].sort("step")
    assert steps.select("step", "loss").rows() == [(1, 12.5), (2, 12.25)]
    row = steps.row(0, named=True)
    assert (row["step_time_s"], row["tokens_per_s"], row["tokens_per_s_per_gpu"]) == (4.0, 4096.0, 512.0)
    assert (row["tflops_per_gpu_logged"], row["mfu_logged"]) == (125.0, 0.4)
    assert row["mem_reserved_bytes"] == 20_500_000_000


def test_what_is_in_use_after_a_batch_is_no_peak(tmp_path: Path) -> None:
    after = "\t Train memory/allocated_mem: 6.5000\n"
    tables = tables_of(tmp_path, block(1, 12.5) + after + block(2, 12.25) + after)
    assert tables["steps"]["mem_allocated_bytes"].to_list() == [6_500_000_000] * 2
    (run,) = tables["runs"].to_dicts()
    assert (run["mem_peak_allocated_bytes"], run["mem_peak_reserved_bytes"]) == (None, 20_500_000_000)


def test_peaks_that_are_named_so_are_those_of_the_run(tmp_path: Path) -> None:
    memory = (
        "\t Train memory/current_allocated_mem: 6.5000\n\t Train memory/current_reserved_mem: 20.5000\n"
        "\t Train memory/peak_allocated_mem: 18.2500\n\t Train memory/peak_reserved_mem: 21.0000\n"
    )
    (run,) = tables_of(tmp_path, block(1, 12.5) + memory)["runs"].to_dicts()
    assert (run["mem_peak_allocated_bytes"], run["mem_peak_reserved_bytes"]) == (18_250_000_000, 21_000_000_000)


@pytest.mark.parametrize("header", ["[token={}/99999]:", "[epoch=1/2][batch={}/9]:", "[sample={}/72]"])
def test_where_the_header_does_not_count_batches(tmp_path: Path, header: str) -> None:
    run = run_of(tmp_path, block(3, 12.5, header) + block(4, 12.25, header))
    assert (run["first_step"], run["last_step"], run["steps_logged"]) == (3, 4, 2)
    assert "steps_planned" not in run


def test_ranks_that_interleave_keep_apart(tmp_path: Path) -> None:
    rows = zip(block(1, 12.5).splitlines(), block(1, 12.5).splitlines(), strict=True)
    text = "\n".join(f"0: {one}\n1: {other}" for one, other in rows)
    steps = tables_of(tmp_path, text + "\n")["steps"]
    assert steps.select("step", "loss").rows() == [(1, 12.5)]


def test_a_cut_block_is_a_reject(tmp_path: Path) -> None:
    tables = tables_of(
        tmp_path, block(1, 12.5) + "[batch=2/9]:\n\t Train time/batch: 1\n\t Train loss/train/total: 12.2"
    )
    assert tables["steps"].height == 1
    assert tables["rejects"]["raw"].to_list() == ["[batch=2/9]"]


@pytest.mark.slow
def test_it_does_not_matter_where_a_file_is_cut() -> None:
    rows = (block(1, 12.5) + block(2, 12.25)).splitlines(keepends=True)
    whole = extract.extract(lines.split(0, "".join(rows).encode()), DIALECTS).facts.steps
    assert whole["step"].to_list() == [1, 2]
    for cut in range(1, len(rows)):
        parts = [("".join(rows[:cut]), 1), ("".join(rows[cut:]), cut + 1)]
        blocks = [lines.split(0, part.encode(), first) for part, first in parts]
        merged = extract.merge([extract.extract(part, DIALECTS, partial=[0]) for part in blocks], DIALECTS)
        assert merged.facts.steps.equals(whole)


def test_settings_and_end(tmp_path: Path) -> None:
    text = (
        "max_seq_len: 2048\nprecision: amp_bf16\n  sharding_strategy: SHARD_GRAD_OP\nn_gpus: 8\n"
        "device_train_batch_size: 64\ndevice_train_microbatch_size: 4\nStarting training...\n"
    )
    run = run_of(tmp_path, text + block(1, 12.5) + "Done.\n")
    assert (run["seq_len"], run["num_gpus"], run["mbs"], run["gas"]) == (2048, 8, 4, 16)
    assert (run["precision"], run["zero_stage"], run["status"]) == ("bf16", 2, "completed")


def test_accelerators_that_share_the_pace(tmp_path: Path) -> None:
    assert run_of(tmp_path, block(1, 12.5))["num_gpus"] == 8


def test_a_pace_that_no_whole_number_shares_tells_nothing(tmp_path: Path) -> None:
    assert "num_gpus" not in run_of(tmp_path, block(1, 12.5).replace("512.0000", "700.0000"))


def test_the_configuration_beats_the_shared_pace(tmp_path: Path) -> None:
    assert run_of(tmp_path, "n_gpus: 16\n" + block(1, 12.5))["num_gpus"] == 16


@pytest.mark.parametrize("name", ["Precision.AMP_BF16", "amp_bf16"])
def test_precision_as_the_trainer_says_it(tmp_path: Path, name: str) -> None:
    said = f"2024-08-30 11:06:42,928: rank0[2086][MainThread]: INFO: composer.trainer.trainer: Using precision {name}\n"
    assert run_of(tmp_path, said + block(1, 12.5))["precision"] == "bf16"


@pytest.mark.parametrize(("sharding", "copies"), [("HYBRID_SHARD", 4), ("FULL_SHARD", None)])
def test_hybrid_sharding_keeps_a_copy_in_every_node(sharding: str, copies: int | None, tmp_path: Path) -> None:
    text = f"sharding_strategy: {sharding}\nn_gpus: 32\nnum_nodes: 4\n"
    run = run_of(tmp_path, text + block(1, 12.5))
    assert (run["num_nodes"], run["zero_stage"], run.get("dp_replicate")) == (4, 3, copies)


@pytest.mark.parametrize("batch", ["time/batch", "trainer/global_step"])
@pytest.mark.parametrize("header", ["[epoch=1][batch={}/10]:", "[epoch=1][batch={}]:"])
def test_a_run_measured_in_epochs(tmp_path: Path, header: str, batch: str) -> None:
    block = "{}\n\t Train {}: {}\n\t Train loss/train/total: 1{}.5000\n"
    text = "".join(block.format(header.format(n), batch, n - 1, n) for n in (1, 2))
    tables = tables_of(tmp_path, text)
    assert tables["steps"].select("step", "loss").rows() == [(1, 11.5), (2, 12.5)]
    assert tables["rejects"].is_empty()


def test_memory_of_early_2023_is_in_bytes(tmp_path: Path) -> None:
    text = (
        "[batch=12/4800]:\n         Train memory/allocated_mem: 9095214455296\n"
        "         Train memory/reserved_mem: 40017854464\n         Train loss/train/total: 9.5000\n"
    )
    step = tables_of(tmp_path, text)["steps"].row(0, named=True)
    assert (step["mem_reserved_bytes"], step["mem_allocated_bytes"]) == (40017854464, None)


def test_a_rank_that_crashed_before_its_first_batch(tmp_path: Path) -> None:
    run = run_of(tmp_path, "ERROR:composer.cli.launcher:Rank 2 crashed with exit code -11.\n")
    assert (run["framework"], run["status"]) == ("composer", "crash")


def test_batch_and_checkpointing_of_the_configuration(tmp_path: Path) -> None:
    text = "global_train_batch_size: 512\nfsdp_config:\n  activation_checkpointing: {}\n"
    run = run_of(tmp_path, text.format("true") + block(1, 12.5))
    assert (run["gbs"], run["recompute"]) == (512, "full")
    assert run_of(tmp_path, text.format("false") + block(1, 12.5))["recompute"] == "none"


@pytest.mark.parametrize(("tokens", "seq_len"), [(93440 * 4096, 4096), (93440 * 4096 - 7, None), (93440 * 51, None)])
def test_batch_and_length_from_the_totals_so_far(tmp_path: Path, tokens: int, seq_len: int | None) -> None:
    """Tokens of padded sequences are those without padding."""
    totals = f"\t Train time/batch: 365\n\t Train time/sample: 93440\n\t Train time/token: {tokens}\n"
    run = run_of(tmp_path, f"[batch=366/9000]:\n{totals}\t Train loss/train/total: 10.3750\n")
    assert (run["gbs"], run.get("seq_len")) == (256, seq_len)
