"""torchtitan's step line, mesh, batch and model lines, old and new, and its endings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.logs.logs import facts_of, run_of, settings_of, step_of, step_of_each, tables_of

HEAD = "[rank0]:[titan] 2025-11-02 03:04:05,678 - root - INFO - "
NEW = (
    HEAD + "step: 10  loss:  6.12345  grad_norm:  1.5000  memory: 64.00GiB(80.00%)  tps: 12,345  tflops: 1,234.50  "
    "mfu: 41.25%"
)
COLOURED = (
    HEAD
    + "\x1b[31mstep: 10  \x1b[32mloss:  6.12345  \x1b[38;2;180;60;0mgrad_norm:  1.5000  \x1b[38;2;54;234;195mmemory: "
    "64.00GiB(80.00%)  \x1b[34mtps: 12,345  \x1b[36mtflops: 1,234.50  \x1b[35mmfu: 41.25%\x1b[39m"
)
OLD = HEAD + "step: 100  loss:  6.1234  memory:  9.50GiB(12.00%)  wps: 1,234  mfu: 5.50%"


@pytest.mark.parametrize("line", [NEW, COLOURED, NEW.removeprefix("[rank0]:")])
def test_new_line(line: str) -> None:
    step = step_of("torchtitan", line)
    assert (step["step"], step["loss"], step["grad_norm"]) == (10, 6.12345, 1.5)
    assert (step["tokens_per_s_per_gpu"], step["tflops_per_gpu_logged"], step["mfu_logged"]) == (
        12345.0,
        1234.5,
        0.4125,
    )
    assert (step["mem_reserved_bytes"], str(step["ts"])) == (64 * 2**30, "2025-11-02 03:04:05")
    assert step["tokens_per_s"] is None
    assert step["step_time_s"] is None


def test_line_of_2024() -> None:
    step = step_of("torchtitan", OLD)
    assert (step["step"], step["tokens_per_s_per_gpu"], step["mfu_logged"]) == (100, 1234.0, 0.055)
    assert step["grad_norm"] is None


@pytest.mark.parametrize("counter", ["10/644", "10/644 = 1.5528%"])
def test_counter_of_a_fork_with_its_total(counter: str) -> None:
    step = step_of("torchtitan", NEW.replace("step: 10", f"step: {counter}"))
    assert (step["step"], step["steps_planned"], step["loss"]) == (10, 644, 6.12345)


def test_mfu_of_fp8_is_not_available() -> None:
    step = step_of("torchtitan", NEW.replace("41.25%", "N/A"))
    assert (step["step"], step["mfu_logged"]) == (10, None)


def test_a_stage_without_the_loss_prints_minus_one() -> None:
    assert step_of("torchtitan", NEW.replace(" 6.12345", "-1.00000"))["loss"] is None


def test_a_cut_line_is_no_step() -> None:
    cuts = step_of_each("torchtitan", [NEW[:at] for at in range(len(HEAD) + 9, len(NEW) - 1, 5)])
    assert [cut["text"] for cut in cuts if cut["step"] is not None] == []


SHORT = HEAD + "step:  {0}  loss:  8.{0}000  memory:  4.88GiB(6.16%)  tps: {1}"


def test_an_experiment_that_counts_no_operations(tmp_path: Path) -> None:
    lines = [SHORT.format(1, "28"), SHORT.format(2, "13,785"), SHORT.format(3, "14,0")]
    tables = tables_of(tmp_path, "\n".join(lines) + "\n")
    assert tables["steps"].select("step", "loss", "tokens_per_s_per_gpu").rows() == [(1, 8.1, 28.0), (2, 8.2, 13785.0)]
    assert tables["rejects"].height == 1


@pytest.mark.parametrize("others", [[], [NEW, SHORT.format(2, "13,785")]])
def test_what_looks_short_was_cut_where_other_lines_are_longer(others: list[str], tmp_path: Path) -> None:
    tables = tables_of(tmp_path, "\n".join([*others, SHORT.format(3, "14")]) + "\n")
    assert tables["steps"]["step"].to_list() == ([10] if others else [])


def test_validation_is_no_step() -> None:
    line = HEAD + "validate step: 10  loss:  6.1000  memory: 64.00GiB(80.00%)  tps: 12,345"
    assert facts_of("torchtitan", line).steps.is_empty()


def test_another_logger_in_front() -> None:
    line = "[2026-02-28 14:29:23,662786][I][components/metrics:515:log] step:  1  loss:  8.1  memory:  8.29GiB(12.96%)  tps: 8,550  tflops: 0.61  mfu: 0.21%"
    assert step_of("torchtitan", line)["step"] == 1


def test_the_last_stage_prints_the_loss(tmp_path: Path) -> None:
    lines = [NEW.replace(" 6.12345", "-1.00000"), NEW.replace("[rank0]", "[rank7]")]
    steps = tables_of(tmp_path, "\n".join(lines) + "\n")["steps"]
    assert steps["loss"].to_list() == [6.12345]


MESH = (
    HEAD
    + "Building device mesh with parallelism: pp={pp}, dp_replicate={rep}, dp_shard={shard}, cp={cp}, tp={tp}, ep={ep}\n"
)


def mesh(**sizes: int) -> str:
    return MESH.format_map({"pp": 1, "rep": 1, "shard": 1, "cp": 1, "tp": 1, "ep": 1} | sizes)


def test_new_mesh(tmp_path: Path) -> None:
    run = run_of(tmp_path, mesh(pp=2, rep=2, shard=4, tp=2, ep=4) + NEW + "\n")
    assert {name: run[name] for name in ("dp", "tp", "pp", "cp", "ep", "num_gpus", "dp_replicate")} == {
        "dp": 8,
        "tp": 2,
        "pp": 2,
        "cp": 1,
        "ep": 4,
        "num_gpus": 32,
        "dp_replicate": 2,
    }


@pytest.mark.parametrize(
    ("names", "sizes", "wanted"),
    [
        ("'tp'", "8", {"dp": 1, "tp": 8, "pp": 1, "cp": 1}),
        ("'pp', 'dp_shard', 'tp'", "2, 4, 2", {"dp": 4, "tp": 2, "pp": 2, "cp": 1}),
        ("'dp'", "8", {"dp": 8, "tp": 1, "pp": 1, "cp": 1, "zero_stage": 3}),
        ("'dp_replicate', 'dp_shard'", "2, 4", {"dp": 8, "zero_stage": 3, "dp_replicate": 2}),
        ("'dp_replicate'", "8", {"dp": 8, "zero_stage": 0, "dp_replicate": None}),
        ("'dp_shard_mod_ep', 'dp_shard_in_ep'", "1, 8", {"dp": 8, "ep": 8, "zero_stage": 3}),
    ],
)
def test_old_mesh(names: str, sizes: str, wanted: dict[str, int | None], tmp_path: Path) -> None:
    line = HEAD + f"Building {names.count(',') + 1}-D device mesh with [{names}], [{sizes}]\n"
    run = run_of(tmp_path, line + NEW + "\n")
    assert {name: run.get(name) for name in wanted} == wanted


def test_experts_of_the_old_mesh_are_unknown_under_tensor_parallelism(tmp_path: Path) -> None:
    line = HEAD + "Building 3-D device mesh with ['dp_shard_mod_ep', 'dp_shard_in_ep', 'tp'], [2, 2, 2]\n"
    run = run_of(tmp_path, line + NEW + "\n")
    assert (run["dp"], run["tp"], run.get("ep")) == (4, 2, None)


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        (mesh(shard=8), 3),
        (mesh(rep=8), 0),
        (mesh(cp=2), 3),
        (mesh(shard=4, pp=2), 2),
        (mesh(shard=8) + HEAD + "Applied FSDP with dp_shard=8, reshard_after_forward=False\n", 2),
        (mesh(shard=4, pp=2) + "+ torchrun -m torchtitan.train --parallelism.fsdp_reshard_after_forward=always\n", 3),
        (mesh(shard=8) + "+ torchrun -m torchtitan.train --parallelism.fsdp_reshard_after_forward never\n", 2),
    ],
)
def test_sharding(text: str, stage: int, tmp_path: Path) -> None:
    assert run_of(tmp_path, text + NEW + "\n")["zero_stage"] == stage


@pytest.mark.parametrize(
    "line",
    [
        "Trainer is initialized with local batch size 4, global batch size 64, gradient accumulation steps 2, sequence length 8192, total steps 100 (warmup 20)",
        "Trainer is initialized with local batch size 4, global batch size 64, gradient_accumulation_steps: 2, sequence length 8192, total steps 100 (warmup 20)",
        "Training starts at step 1, with local batch size 4, global batch size 64, sequence length 8192, total steps 100 (warmup 20)",
    ],
)
def test_batch_line(line: str, tmp_path: Path) -> None:
    run = run_of(tmp_path, mesh(shard=8) + HEAD + line + "\n" + NEW + "\n")
    wanted = {"mbs": 4, "gbs": 64, "gas": 2, "seq_len": 8192, "steps_planned": 100}
    assert {name: run[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("Applied full activation checkpointing to the model", "full"),
        ("Applied selective activation checkpointing to the model", "selective"),
        ("Applied FullAC activation checkpointing to the model", "full"),
    ],
)
def test_recomputation(line: str, word: str) -> None:
    assert settings_of("torchtitan", HEAD + line)["recompute"] == word


@pytest.mark.parametrize(
    ("line", "word", "source"),
    [
        ("Swapped to Float8Linear layers", "fp8", "log_line"),
        ("Swapped .weight to MXFP8TrainingWeightWrapperTensor", "mxfp8", "log_line"),
        ("Patch Turbo MXLinear", "bf16", "assumed"),
    ],
)
def test_precision(line: str, word: str, source: str, tmp_path: Path) -> None:
    tables = tables_of(tmp_path, mesh(shard=8) + HEAD + line + "\n" + NEW + "\n")
    assert tables["runs"]["precision"].to_list() == [word]
    assert tables["settings"].filter(name="precision", is_used=True)["setting_source"].to_list() == [source]


def test_machine_and_model_lines() -> None:
    text = "\n".join(
        HEAD + line
        for line in (
            "torchtitan version: 0.2.2 (0.0.0 means __version__ is not defined correctly).",
            "CUDA capacity: NVIDIA B200 with 178.35GiB memory",
            "Model llama3 8B size: 8,030,261,248 total parameters",
            "Total parameter count: dense 30,000, sparse 10,000, active 35,000",
            "Peak FLOPS used for computing MFU: 2.250e+15",
        )
    )
    found = settings_of("torchtitan", text)
    assert (found["accelerator"], found["model"], found["framework_version"]) == ("NVIDIA B200", "llama3 8B", "0.2.2")
    assert (found["params"], found["active_params"], float(found["peak_tflops_logged"])) == (
        "8030261248",
        "35000",
        2250.0,
    )


def test_undefined_version_is_no_version() -> None:
    line = HEAD + "torchtitan version: 0.0.0+unknown (0.0.0 means __version__ is not defined correctly)."
    assert "framework_version" not in settings_of("torchtitan", line)


def test_card_of_2024_with_its_index() -> None:
    line = HEAD + "GPU capacity: NVIDIA H100 (0) with 95.04GiB memory"
    assert settings_of("torchtitan", line)["accelerator"] == "NVIDIA H100"


def test_shape_from_the_model_arguments() -> None:
    line = HEAD + (
        "Building llama3 8B with TransformerModelArgs(dim=4096, n_layers=32, n_heads=32, n_kv_heads=8, vocab_size=128256, "
        "multiple_of=1024, max_seq_len=8192)"
    )
    found = settings_of("torchtitan", line)
    names = ("hidden_size", "num_layers", "num_heads", "num_kv_heads", "vocab_size")
    assert [found[name] for name in names] == ["4096", "32", "32", "8", "128256"]


def test_command_line_and_primus_dump() -> None:
    text = """\
    + torchrun --nproc_per_node=8 -m torchtitan.train --training.seq_len=128 --training.local_batch_size 160 --training.steps=10
    [20251031 06:37:43][rank-1/8][INFO ] arguments activation_checkpoint.mode.......................... full
    [20251031 06:37:43][rank-1/8][INFO ] arguments parallelism.data_parallel_shard_degree............... -1
    [20251031 06:37:43][rank-1/8][INFO ] arguments parallelism.tensor_parallel_degree................... 4
    [20251031 06:37:43][rank-1/8][INFO ] arguments training.global_batch_size........................... -1
    """
    found = facts_of("torchtitan", text).settings
    by_source = {
        source: dict(rows.select("name", "value").iter_rows())
        for (source,), rows in found.partition_by("setting_source", as_dict=True).items()
    }
    assert by_source["command_line"] == {
        "seq_len": "128",
        "mbs": "160",
        "steps_planned": "10",
        "gpus_per_node": "8",
        "num_nodes": "1",
    }
    assert by_source["argument_dump"] == {"recompute": "full", "tp": "4"}


def test_end(tmp_path: Path) -> None:
    assert run_of(tmp_path, NEW + "\n" + HEAD + "Training completed\n")["status"] == "completed"


def test_a_restart_after_the_same_step_is_another_attempt(tmp_path: Path) -> None:
    later = NEW.replace("step: 10", "step: 20")
    runs = tables_of(tmp_path, mesh(shard=8) + NEW + "\n" + mesh(shard=4) + later + "\n")["runs"]
    assert runs["dp"].to_list() == [8, 4]


def test_line_of_early_2024() -> None:
    line = (
        "[rank0]:2024-03-07 16:40:26,226 - root - INFO - step:  2  loss: 10.5  iter:  1.25  data: 0.035  lr: 0.00033333"
    )
    step = step_of("torchtitan", line)
    assert (step["step"], step["loss"], step["step_time_s"], step["learning_rate"]) == (2, 10.5, 1.25, 0.00033333)
    assert step_of("torchtitan", line[: line.index("  data:")])["step"] is None


def test_colours_without_their_escape_character(tmp_path: Path) -> None:
    line = "2024-05-22 13:03:46,226 - root - INFO - [36mstep: {}  [32mloss: {}  [33mmemory: 74.81GiB(78.74%)  [34mwps: 1,032  "
    text = "\n".join(line.format(n, 12.5 - n) + "[35mmfu: 14.27%[39m" for n in (1, 2))
    run = run_of(tmp_path, text + "\n")
    assert (run["framework"], run["steps_logged"], run["last_loss"]) == ("torchtitan", 2, 10.5)
    assert (run["tokens_per_s_per_gpu"], run["mfu_logged"]) == (1032.0, 0.1427)


@pytest.mark.parametrize(("end", "status"), [("destroyed", "completed"), ("destroyed.", "truncated")])
def test_a_process_group_that_was_given_back(end: str, status: str, tmp_path: Path) -> None:
    text = "[titan] 2025-07-31 14:13:31,033 - root - INFO - Starting job: Llama 3 8B training\n"
    text += "[titan] 2025-07-31 14:13:32,845 - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [2, 2]\n"
    run = run_of(tmp_path, text + f"[titan] 2025-07-31 14:15:04,677 - root - INFO - Process group {end}\n")
    assert run["status"] == status


QWEN3 = (
    HEAD + "Building qwen3 {} with Qwen3ModelArgs(dim=1024, n_layers=28, hidden_dim=3072, enable_weight_tying=True, "
    "moe_enabled={}, moe_inter_dim=768, moe_args=MoEArgs(num_experts={}, num_shared_experts=0, top_k={}))\n"
)


def test_a_dense_model_that_states_experts_has_none() -> None:
    shape = {"hidden_size": "1024", "num_layers": "28", "ffn_hidden_size": "3072", "tie_word_embeddings": "True"}
    assert settings_of("torchtitan", QWEN3.format("0.6B", False, 8, 1)) == shape
    experts = {"num_experts": "128", "experts_per_token": "8", "expert_ffn_hidden_size": "768"}
    assert settings_of("torchtitan", QWEN3.format("30B-A3B", True, 128, 8)) == shape | experts
    # Other models lack the switch.
    assert (
        settings_of("torchtitan", QWEN3.format("x", True, 128, 8).replace("moe_enabled=True, ", "")) == shape | experts
    )


def test_a_dense_models_active_parameters_are_all(tmp_path: Path) -> None:
    size = HEAD + "Model qwen3 0.6B size: 596,049,920 total parameters\n"
    run = run_of(tmp_path, QWEN3.format("0.6B", False, 8, 1) + size + NEW + "\n")
    assert (run["params"], run["active_params"]) == (596049920, 596049920)


@pytest.mark.parametrize(
    "line",
    [
        "arguments model.converters........................ ['float8']",
        "[rank0]:[titan] - root - INFO - Float8 tensorwise scaled training active",
        '--model.converters="quantize.linear.float8"',
    ],
)
def test_signs_of_float8(tmp_path: Path, line: str) -> None:
    stated = "arguments training.mixed_precision_param.................................... bfloat16"
    run = run_of(tmp_path, f"{stated}\n{line}\nBuilding 1-D device mesh with ['dp_shard'], [8]\n")
    assert run["precision"] == "fp8"


@pytest.mark.parametrize(
    "before",
    ["INFO:torchtitan.components.metrics:", '{"level": "INFO", "message": "', "May  1 12:00:07 n3 torchrun[5]: "],
)
def test_another_logger_may_stand_in_front_of_the_step(before: str) -> None:
    step = step_of("torchtitan", before + NEW.removeprefix(HEAD))
    assert (step["step"], step["loss"], step["mfu_logged"]) == (10, 6.12345, 0.4125)


def test_the_configuration_as_json(tmp_path: Path) -> None:
    text = f"""\
{HEAD}Running with configs: {{
[rank0]:  "parallelism": {{
[rank0]:    "data_parallel_replicate_degree": 1,
[rank0]:    "data_parallel_shard_degree": -1,
[rank0]:    "tensor_parallel_degree": 2,
[rank0]:    "pipeline_parallel_degree": 4
[rank0]:  }},
[rank0]:  "activation_checkpoint": {{
[rank0]:    "mode": "selective",
[rank0]:  }},
[rank0]:  "validation": {{
[rank0]:    "seq_len": 2048,
[rank0]:  }}
[rank0]:}}
{NEW}
"""
    run = run_of(tmp_path, text)
    assert (run["tp"], run["pp"], run["recompute"]) == (2, 4, "selective")
    assert "seq_len" not in run


def test_the_configuration_as_a_dict(tmp_path: Path) -> None:
    sections = {
        "training": {"batch_size": 2, "seq_len": 4096, "steps": 500, "tensor_parallel_degree": 2},
        "experimental": {"pipeline_parallel_degree": 4, "context_parallel_degree": 1},
        "activation_checkpoint": {"mode": "full", "selective_ac_option": "2"},
        "validation": {"batch_size": 8, "seq_len": 1024, "steps": 10},
    }
    run = run_of(tmp_path, f"{HEAD}Running with args: {sections}\n{NEW}\n")
    assert (run["mbs"], run["seq_len"], run["steps_planned"], run["recompute"]) == (2, 4096, 500, "full")
    assert (run["tp"], run["pp"], run["cp"]) == (2, 4, 1)
