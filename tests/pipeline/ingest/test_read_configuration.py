"""Files that are called as configurations are: those with settings of a training, others, and damaged ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pipeline.ingest.lake_of_logs import LakeOfLogs

STATES = {"model": {"n_layers": 24, "d_model": 2048}, "data": {"seq_len": 2048}}
SCRIPT = "#!/bin/bash\nset -e\n"


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        ("config.resolved.json", json.dumps(STATES), "parsed"),
        ("config.json", json.dumps({"version": 1, "loggers": {}}), "skipped"),
        ("config.logging.yaml", "version: 1\nloggers: {}\n", "skipped"),
        (".hydra/hydra.yaml", "hydra:\n  job:\n    id: '12345'\n", "skipped"),
        ("run.sh", f"{SCRIPT}python train.py --seq-len 2048 --micro-batch-size 2\n", "parsed"),
        ("run.sh", f"{SCRIPT}echo begin\n", "skipped"),
        ("config.resolved.json", '{"model": {"n_layers"', "rejected"),
        ("ds_config.json", json.dumps({"version": 1}), "rejected"),
    ],
)
def test_what_states_nothing_of_a_training_is_skipped_and_what_is_damaged_rejected(
    tmp_path: Path, name: str, text: str, status: str
) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write(f"run/{name}", text)
    logs.write("run/train.log", "".join(f"step {step} loss {9 - step / 10:.4f}\n" for step in range(1, 31)))
    logs.ingest()
    files = logs.lake.read("files", ["path", "status"])
    assert dict(files.iter_rows())[str(logs.folder / f"run/{name}")] == status


def test_options_that_a_launch_script_keeps_in_variables_are_those_of_the_run(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write(
        "run/launch.sh",
        f"""{SCRIPT}#SBATCH --nodes=4
TP=4
GPUS=$((SLURM_NNODES * 8))
MODEL_ARGS=(
    --num-layers 40
    --hidden-size 5120  # 13B
)
PARALLEL="--tensor-model-parallel-size $TP --micro-batch-size ${{MBS:-2}}"
if [ $GPUS -ge 32 ]; then BATCH="--global-batch-size $((GPUS * 16))"; else BATCH="--global-batch-size 8"; fi
srun torchrun --nnodes $SLURM_NNODES --nproc-per-node 8 pretrain.py ${{MODEL_ARGS[@]}} $PARALLEL $BATCH --seq-length 4096
""",
    )
    logs.write("run/train.log", "".join(f"step {step} loss {9 - step / 10:.4f}\n" for step in range(1, 31)))
    logs.ingest()
    columns = ["num_nodes", "num_gpus", "tp", "mbs", "gbs", "num_layers", "hidden_size", "seq_len"]
    run = logs.lake.read("runs", columns).row(0, named=True)
    # What stands behind ${MBS:-2} only the environment of the run knew.
    assert run == {
        "num_nodes": 4,
        "num_gpus": 32,
        "tp": 4,
        "mbs": None,
        "gbs": 512,
        "num_layers": 40,
        "hidden_size": 5120,
        "seq_len": 4096,
    }


def test_a_launch_script_fills_what_the_log_of_a_known_trainer_does_not_state(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    script = "ARGS=(--model_name_or_path meta-llama/Meta-Llama-3-8B --per_device_train_batch_size 4\n --max_steps 40)\n"
    logs.write("run/train.sh", f"{SCRIPT}{script}accelerate launch --num_processes 8 sft.py ${{ARGS[@]}}\n")
    losses = "".join(
        f"{{'loss': {2 - step / 100:.4f}, 'grad_norm': 1.2, 'learning_rate': 1e-05, 'epoch': {step / 400:.3f}}}\n"
        for step in range(10, 50, 10)
    )
    logs.write("run/train.log", losses)
    logs.ingest()
    run = logs.lake.read("runs", ["framework", "model", "mbs", "num_gpus"]).row(0)
    assert run == ("hf-trainer", "Llama 3 8B", 4, 8)
    settings = logs.lake.read("settings", ["name", "setting_source"]).filter(name="mbs")
    assert settings["setting_source"].to_list() == ["launch_script"]


def test_what_one_node_states_and_another_measures_is_of_one_run(tmp_path: Path) -> None:
    """The first node prints the configuration, and the last rank the losses."""
    logs = LakeOfLogs(tmp_path)
    logs.write(
        "run/node0.log", "[rank 0] config | layers=40 hidden=5120 heads=40 | tp=4 pp=2 dp=2 | mbs=1 gbs=512 seq=4096\n"
    )
    steps = "".join(f"[rank 15] step {step} | loss {9 - step / 10:.4f} | 12.5 s\n" for step in range(1, 31))
    logs.write("run/node1.log", f"starting ranks 8-15 of 16\n{steps}")
    logs.write("run/notes.txt", "to do: ask for more nodes\n")
    logs.ingest()
    columns = ["tp", "pp", "dp", "mbs", "gbs", "seq_len", "num_layers", "last_step"]
    assert logs.lake.read("runs", columns).rows() == [(4, 2, 2, 1, 512, 4096, 40, 30)]
    assert logs.statuses()["run/notes.txt"] == "skipped"
