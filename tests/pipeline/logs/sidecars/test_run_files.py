"""Configurations and states that trainers leave beside a log."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sweepscope.pipeline.logs.sidecars import hparams, run_files
from tests.pipeline.logs.logs import tables_of

DICT = "***** Running training *****\n{'loss': 2.5, 'grad_norm': 1.2, 'learning_rate': 1e-05, 'epoch': 0.01}\n"
STATE = {"epoch": 1.0, "global_step": 4, "max_steps": 4, "train_batch_size": 2, "logging_steps": 4, "log_history": []}
DS_CONFIG = {
    "zero_optimization": {"stage": 3, "overlap_comm": True},
    "bf16": {"enabled": True},
    "train_batch_size": "auto",
    "gradient_accumulation_steps": 2,
}
AXOLOTL = (
    "base_model: org/Tiny-1B\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\nsequence_len: 4096\nbf16: true\n"
)
OBJECTS = """
cfg: !!python/object:nemo.collections.llm.gpt.model.llama.Config
  state: !!python/object/new:own.Parallel
    args: !!python/tuple [1, 2]
    tensor_model_parallel_size: 2
  micro_batch_size: 4
  activation: !!python/name:torch.nn.functional.silu ''
  model: !own
    encoder_seq_length: 4096
num_layers: !!python/object/apply:os.system [exit 3]
other: {num_layers: 32}
"""
HPARAMS = "cfg:\n  micro_batch_size: 4\n  tensor_model_parallel_size: 2\n  model:\n    encoder_seq_length: 4096\n"
ACCELERATE = """
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  fsdp_sharding_strategy: FULL_SHARD
mixed_precision: bf16
num_machines: 1
num_processes: 8
"""
NEMO_COMMAND = (
    "/opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py trainer.devices=8 trainer.num_nodes=4 "
    "trainer.max_steps=100 trainer.precision=bf16-mixed ++model.tensor_model_parallel_size=2 model.micro_batch_size=4 "
    "model.global_batch_size=512 model.encoder_seq_length=4096 model.virtual_pipeline_model_parallel_size=null\n"
)
LITGPT = (
    "model_name: pythia-160m\ndevices: 8\ntrain:\n  micro_batch_size: 4\n  global_batch_size: 512\n  max_steps: -1\n"
)
TITAN = """
[model]
flavor = "8B"
[training]
seq_len = 8192
steps = 10
[parallelism]
tensor_parallel_degree = 2
data_parallel_shard_degree = -1
"""


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (
            run_files.read_trainer_state,
            json.dumps(STATE),
            {"steps_planned": "4", "mbs": "2", "status_file": "completed"},
        ),
        (
            run_files.read_trainer_state,
            json.dumps({**STATE, "global_step": 3, "train_batch_size": None}),
            {"steps_planned": "4"},
        ),
        (run_files.read_train_results, '{"train_runtime": 12.5}', {"status_file": "completed"}),
        (run_files.read_deepspeed, json.dumps(DS_CONFIG), {"gas": "2", "zero_stage": "3", "precision": "bf16"}),
        (
            run_files.read_axolotl,
            AXOLOTL,
            {"model": "org/Tiny-1B", "mbs": "2", "gas": "4", "seq_len": "4096", "precision": "bf16"},
        ),
        (hparams.read_nemo, HPARAMS, {"mbs": "4", "tp": "2", "seq_len": "4096"}),
        (hparams.read_nemo, OBJECTS, {"mbs": "4", "tp": "2", "seq_len": "4096", "num_layers": "32"}),
        (hparams.read_own, "lr: 0.1\nbetas: !!python/tuple [0.9, 0.95]\n", {}),
        (hparams.read_own, "cfg: !!python/object:os.system {}", {}),
        (hparams.read_own, "me: &a !!python/object:own.Model {self: *a, loss: !!python/name:torch.nn.MSELoss ''}", {}),
        (run_files.read_litgpt, LITGPT, {"model": "pythia-160m", "gpus_per_node": "8", "mbs": "4", "gbs": "512"}),
        (
            run_files.read_accelerate,
            ACCELERATE,
            {"num_gpus": "8", "num_nodes": "1", "precision": "bf16", "zero_stage": "3"},
        ),
        (
            run_files.read_accelerate,
            "distributed_type: DEEPSPEED\nmixed_precision: fp16\ndeepspeed_config:\n  zero_stage: 2\n",
            {"precision": "fp16", "zero_stage": "2"},
        ),
        (
            run_files.read_accelerate,
            "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n",
            {"zero_stage": "2"},
        ),
        (
            run_files.read_nemo_command,
            NEMO_COMMAND,
            {
                "gpus_per_node": "8",
                "num_nodes": "4",
                "arg:max_steps": "100",
                "precision": "bf16",
                "tp": "2",
                "mbs": "4",
                "gbs": "512",
                "seq_len": "4096",
            },
        ),
        (run_files.read_torchtitan, TITAN, {"arg:flavor": "8B", "seq_len": "8192", "steps_planned": "10", "tp": "2"}),
    ],
)
def test_what_a_file_says(read: Callable[[str], Mapping[str, str]], text: str, said: dict[str, str]) -> None:
    assert dict(read(text)) == said


SPEED = {"train_runtime": 9.4062, "train_samples_per_second": 10.206, "train_steps_per_second": 2.551}
HISTORY = [{"loss": 9.0 - step / 4, "step": step, "num_input_tokens_seen": 512 * step} for step in range(4, 25, 4)]
END = {"epoch": 0.0312, "train_loss": 5.5, "step": 24, **SPEED}


def test_the_state_tells_batch_and_mean_step_time_of_a_whole_training() -> None:
    state = {"global_step": 24, "max_steps": 24, "train_batch_size": 2, "log_history": [*HISTORY, END]}
    found = run_files.read_trainer_state(json.dumps(state))
    assert found == {
        "steps_planned": "24",
        "mbs": "2",
        "status_file": "completed",
        "arg:total_batch": "4",
        "gbs_tokens": "512",
        "step_time_s": "0.391925",
        "step_time_basis": "whole_run",
        "tokens_per_s": "1306.372",
    }


def test_the_state_of_a_training_that_was_taken_up_tells_no_step_time() -> None:
    end = {**END, "train_loss": 2.5}
    state = {"global_step": 24, "max_steps": 24, "train_batch_size": 2, "log_history": [*HISTORY, end]}
    assert "step_time_s" not in run_files.read_trainer_state(json.dumps(state))


def test_the_results_tell_planned_steps_and_batch() -> None:
    found = run_files.read_train_results(json.dumps({"epoch": 0.0312, **SPEED}))
    assert found == {"status_file": "completed", "steps_planned": "24", "arg:total_batch": "4"}


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (run_files.read_trainer_state, '{"global_step": 3}'),
        (run_files.read_trainer_state, "[1]"),
        (run_files.read_train_results, "{}"),
        (run_files.read_deepspeed, '{"name": "x"}'),
        (run_files.read_axolotl, "a: 1"),
        (run_files.read_axolotl, "a: [1"),
        (hparams.read_nemo, "lr: 0.1"),
        (hparams.read_nemo, "cfg: !!python/object:os.system {}"),
        (hparams.read_own, HPARAMS),
        (hparams.read_own, "a: [1"),
        (hparams.read_own, "- a"),
        (run_files.read_litgpt, "lr: 0.1"),
        (run_files.read_torchtitan, "[tool]\nx = 1"),
        (run_files.read_torchtitan, "not toml"),
        (run_files.read_accelerate, "num_processes: 8"),
        (run_files.read_nemo_command, "trainer.devices=8"),
    ],
)
def test_another_file_of_that_name_is_refused(read: Callable[[str], Mapping[str, str]], text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(text)


def test_beside_a_single_log_they_configure_it(tmp_path: Path) -> None:
    (tmp_path / "trainer_state.json").write_text(json.dumps(STATE))
    (tmp_path / "ds_config_zero3.json").write_text(json.dumps(DS_CONFIG))
    run = tables_of(tmp_path, DICT)["runs"].row(0, named=True)
    assert (run["status"], run["steps_planned"], run["mbs"], run["zero_stage"]) == ("completed", 4, 2, 3)


def test_beside_several_logs_they_configure_none_and_join_none(tmp_path: Path) -> None:
    (tmp_path / "ds_config.json").write_text(json.dumps(DS_CONFIG))
    (tmp_path / "other.log").write_text(DICT)
    runs = tables_of(tmp_path, DICT)["runs"]
    assert runs.height == 2
    assert runs["zero_stage"].is_null().all()


def test_they_make_no_run_of_a_text_beside_them(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(TITAN)
    assert tables_of(tmp_path, "merges\n", name="merges.txt")["runs"].is_empty()


def test_nemos_command_marks_the_directory_of_one_run(tmp_path: Path) -> None:
    (tmp_path / "cmd-args.log").write_text(NEMO_COMMAND)
    (tmp_path / "lightning_logs.txt").write_text("GPU available: True (cuda), used: True\n")
    line = (
        "Training epoch 0, iteration 99/99 | global_step: 99 | reduced_train_loss: 2.5 | train_step_timing in s: 7.5\n"
    )
    run = tables_of(tmp_path, line, name="nemo_log_globalrank-0_localrank-0.txt")["runs"]
    assert run.select("framework", "steps_planned", "mbs", "num_gpus", "status").rows() == [
        ("nemo", 99, 4, 32, "completed")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "lr: 0.1\nbatch_size: 32\n",
        "lr: 0.1\nargs: !!python/object:argparse.Namespace {gpus: 8}\nact: !!python/name:torch.nn.GELU ''\n",
    ],
)
def test_hyperparameters_of_a_script_of_ones_own_are_no_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "hparams.yaml").write_text(text)
    bar = "Epoch 0:  50%|#####     | 5/10 [00:05<00:05,  1.00it/s, v_num=0, train_loss=2.50]\n"
    tables = tables_of(tmp_path, bar)
    assert tables["files"]["status"].to_list() == ["parsed", "parsed"]
    assert tables["files"]["error"].null_count() == 2
    assert tables["runs"]["framework"].to_list() == ["lightning"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("batch_size: 4\nlr: 0.001\nseq_len: 64\n", {"mbs": "4", "seq_len": "64"}),
        (
            "accumulate_grad_batches: 2\nmodel: {n_layer: 4, n_head: 8}\n",
            {"gas": "2", "num_layers": "4", "num_heads": "8"},
        ),
        ("num_layers: 12\nhidden_size: 768\n", {"num_layers": "12", "hidden_size": "768"}),
        ("encoder: {num_layers: 2}\ndecoder: {num_layers: 4}\n", {}),
        ("batch_size: true\nseq_len: auto\nvocab_size: -1\n", {}),
    ],
)
def test_hyperparameters_under_the_usual_names(text: str, found: dict[str, str]) -> None:
    assert hparams.read_own(text) == found
    with pytest.raises(ValueError, match="NeMo"):
        hparams.read_nemo(text)


def test_aliases_that_mean_billions_of_values_are_read_at_once() -> None:
    levels = [f"l{n}: &l{n} {{{', '.join(f'k{k}: *l{n - 1}' for k in range(40))}}}" for n in range(1, 9)]
    found = hparams.read_nemo("\n".join(["l0: &l0 {micro_batch_size: 4}", *levels]))
    assert found == {"mbs": "4"}
