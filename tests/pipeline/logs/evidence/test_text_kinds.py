"""Texts that no dialect reads: which are trainings that died or print nothing known, and which are something else."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from sweepscope.pipeline.logs.evidence.text_kinds import kind_of
from tests.pipeline.ingest_in_memory import Tables, tables_of

SCRIPT = 'Traceback (most recent call last):\n  File "/home/u/lm/{}", line {}, in <module>\n    {}\n'
DIED = {
    "an import fails": SCRIPT.format("train.py", 3, "import flash_attn")
    + "ModuleNotFoundError: No module named 'flash_attn'",
    "a library's import fails": SCRIPT.format("main.py", 1, "from transformers import Trainer")
    + "ImportError: cannot import name 'Trainer' from 'transformers' (unknown location)",
    "the data is not there": "Loading the data ...\n"
    + SCRIPT.format("pretrain.py", 40, "data = load(path)")
    + "FileNotFoundError: [Errno 2] No such file or directory: '/data/shards'",
    "a key is unknown": "config: small.yaml\n" + SCRIPT.format("run.py", 12, "lr = config['lr']") + "KeyError: 'lr'",
    "an error of one's own": SCRIPT.format("main.py", 9, "check(config)") + "lm.config.Unusable: 3 heads for 128",
    "an argument is unknown": "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --learning-rate 3",
    "the script is not there": "python: can't open file '/home/u/train.py': [Errno 2] No such file or directory",
}

README = """\
# Small language models

This repository trains small language models on one node. The loss of each step is printed, and a checkpoint is saved
after every epoch of the training.

## Training

- Install the packages first.
- Set the learning rate and the batch size in the configuration.

```
torchrun --nproc-per-node 8 train.py
```

RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB

means that the batch size is too large.
"""
REQUIREMENTS = (
    "torch==2.4.0\ntransformers>=4.40,<5\ndatasets\naccelerate[rich]~=0.30 # the launcher\n-r base.txt\nnumpy\n"
)
PIP = """\
Collecting torch==2.4.0 (from -r requirements.txt (line 1))
  Downloading torch-2.4.0-cp311-cp311-manylinux1_x86_64.whl.metadata (26 kB)
Collecting transformers>=4.40 (from -r requirements.txt (line 2))
  Using cached transformers-4.40.0-py3-none-any.whl.metadata (137 kB)
Requirement already satisfied: numpy in ./env/lib/python3.11/site-packages (1.26.4)
Building wheels for collected packages: flash-attn
  Created wheel for flash-attn: filename=flash_attn-2.6.3-cp311-cp311-linux_x86_64.whl size=187000000
  Stored in directory: /home/u/.cache/pip/wheels/ab/cd
Successfully built flash-attn
Installing collected packages: torch, transformers, flash-attn
Successfully installed flash-attn-2.6.3 torch-2.4.0 transformers-4.40.0
"""
APT = "Reading package lists... Done\nGet:1 http://deb.example.org stable/main amd64 libnccl2 amd64 2.21 [200 MB]\n" + (
    "Selecting previously unselected package libnccl2.\nUnpacking libnccl2 (2.21) ...\nSetting up libnccl2 (2.21) ...\n"
)
BUILD = "-- The CUDA compiler identification is NVIDIA 12.4.131\n-- Configuring done\n" + "".join(
    f"[{n}/40] /usr/local/cuda/bin/nvcc -O3 -c kernels/adam_{n}.cu -o build/adam_{n}.o\n"
    f'kernels/adam_{n}.cu(31): warning #177-D: variable "step" was declared but never referenced\n'
    for n in range(1, 9)
)
SMI = """\
Mon Jan 12 10:00:01 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:18:00.0 Off |                    0 |
| N/A   41C    P0            310W /  700W |   61000MiB /  81559MiB |     98%      Default |
+-----------------------------------------------------------------------------------------+
"""
TOP = """\
top - 10:00:01 up 41 days,  2:03,  0 users,  load average: 64.10, 63.90, 63.00
Tasks: 901 total,  65 running, 836 sleeping,   0 stopped,   0 zombie
%Cpu(s): 49.1 us,  0.9 sy,  0.0 ni, 50.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st
MiB Mem : 2063900.0 total, 1203100.0 free,  310000.0 used,  550800.0 buff/cache
"""
NCCL = "".join(
    f"node1:{4000 + rank}:{4000 + rank} [{rank}] NCCL INFO Channel 00/0 : {rank}[{rank}] -> 7[7] via P2P\n"
    for rank in range(9)
)
SBATCH = "Submitted batch job 410022\nSubmitted batch job 410023\nsbatch: Pending job allocation 410024\nSubmitted batch job 410024\n"
WGET = """\
--2026-01-12 10:00:01--  https://data.example.org/shard_000.bin
Resolving data.example.org (data.example.org)... 10.0.0.7
Connecting to data.example.org (data.example.org)|10.0.0.7|:443... connected.
HTTP request sent, awaiting response... 200 OK
Length: 1073741824 (1.0G) [application/octet-stream]
Saving to: 'shard_000.bin'
2026-01-12 10:00:31 (35.8 MB/s) - 'shard_000.bin' saved [1073741824/1073741824]
"""
HUB = "".join(
    f"model-0000{n}-of-00004.safetensors: 100%|####| 4.98G/4.98G [01:40<00:00, 49.7MB/s]\n" for n in range(1, 5)
)
WANDB = "".join(
    f"2026-01-12 10:00:0{n},123 INFO    MainThread:4711 [wandb_init.py:init():6{n}0] step {n}\n" for n in range(9)
)
VOCABULARY = "\n".join(["<pad>", "<s>", "</s>", "the", "##ing", "training", "loss", "epoch", "step", "batch"] * 5)
STATISTICS = "shard documents tokens\n" + "".join(f"shard_{n:03d} {n * 7919} {n * 104729}\n" for n in range(1, 30))
SOURCE = """\
import os
import torch
from torch import nn

def train(model, data):
    for step, batch in enumerate(data):
        loss = model(batch)
        loss.backward()
        print(step, loss.item())

if __name__ == "__main__":
    train(nn.Linear(2, 2), [])
"""

OTHERS = {
    "README_first.txt": (README, "a document"),
    "usage.log": (README, "a document"),
    "requirements-gpu.txt": (REQUIREMENTS, "a list of packages"),
    "install.log": (PIP, "an installation of packages"),
    "apt.log": (APT, "an installation of packages"),
    "build.out": (BUILD, "a build"),
    "top.log": (TOP * 3, "samples of a machine's state"),
    "submit.log": (SBATCH, "a scheduler's words"),
    "download.log": (WGET * 3, "a download"),
    "hub.err": (HUB, "a download"),
    "debug.log": (WANDB, "the log of a service"),
    "tokens.txt": (VOCABULARY, "a list"),
    "statistics.txt": (STATISTICS, "a table of numbers"),
    "train.py.txt": (SOURCE, "the source of a program"),
    "answers.log": ("answering 3 questions\n-> 42\n-> no\n-> perhaps\n", "nothing in it tells of a training; its last"),
    "notes.txt": (
        "Traceback (most recent call last):\nValueError: from a notebook\n",
        "nothing in it tells of a training",
    ),
}


def only_run(tables: Tables) -> tuple[object, ...]:
    (run,) = tables["runs"].select("framework", "status", "status_evidence").rows()
    return run


@pytest.mark.parametrize("case", DIED)
def test_a_training_that_died_before_its_first_step_is_a_run(case: str) -> None:
    text = DIED[case]
    assert only_run(tables_of({"bs8.log": text + "\n"})) == ("other", "crash", text.rsplit("\n", 1)[-1])


def test_it_is_one_run_with_its_stdout() -> None:
    tables = tables_of({"job.out": "node 1 of 1\n", "job.err": DIED["a key is unknown"]})
    assert only_run(tables)[1] == "crash"


def test_it_is_a_run_whatever_was_installed_and_downloaded_before() -> None:
    for before in (PIP, HUB, BUILD):
        assert only_run(tables_of({"job.out": before + DIED["an import fails"]}))[1] == "crash"


def test_a_log_of_which_no_line_is_known_is_a_run_of_unknown_end() -> None:
    text = "reading 16 shards to train on\nthe optimizer is a full moon\ntraining waits for the others\n"
    evidence = "no line is known; the last: training waits for the others"
    assert only_run(tables_of({"gpt.log": text})) == ("other", "unknown", evidence)


def test_lines_of_values_by_signs_are_no_list_of_packages() -> None:
    text = "".join(f"step={step} fwd=0.31 bwd=0.62 {step % 7}\n" for step in range(1, 40))
    (row,) = tables_of({"rank_1.log": text})["files"].select("error").rows()
    assert "a list of packages" not in str(row[0])


def test_it_is_running_while_it_is_written() -> None:
    tables = tables_of({"gpt.log": "training batch_size: 16\n"}, now=datetime.now(UTC).replace(tzinfo=None))
    assert only_run(tables)[1] == "running"


BEGUN = "[transformers] The tokenizer has more words than the model.\n\r  0%|          | 0/500 [00:00<?, ?it/s]"


def test_a_training_that_was_killed_in_its_first_step_is_a_run() -> None:
    evidence = "the log stops without a reason"
    assert only_run(tables_of({"bs64/train.log": BEGUN})) == ("other", "truncated", evidence)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bs64/answers.log", BEGUN),
        ("train.log", BEGUN + " the next question"),
        ("train.log", BEGUN.replace("0%|  ", "Map: 0%|").replace("it/s", " examples/s")),
        ("train.log", BEGUN.replace("0/500", "500/500").replace("0%", "100%")),
        ("train.log", BEGUN.replace("[transformers]", "[tables]")),
    ],
)
def test_other_loops_are_none(name: str, text: str) -> None:
    assert tables_of({name: text})["runs"].is_empty()


@pytest.mark.parametrize("name", OTHERS)
def test_other_texts_are_no_runs_and_the_ledger_says_why(name: str) -> None:
    text, reason = OTHERS[name]
    tables = tables_of({name: text})
    assert tables["runs"].is_empty(), tables["runs"]["status_evidence"]
    assert tables["events"].is_empty()
    (row,) = tables["files"].select("kind", "status", "error").rows()
    assert row[:2] == ("unknown", "skipped")
    assert reason in str(row[2])


def test_samples_of_nvidia_smi_are_no_run() -> None:
    tables = tables_of({"nvidia-smi.log": SMI * 3})
    assert (tables["runs"].height, tables["files"]["kind"].to_list()) == (0, ["memory"])


def test_nccl_output_alone_is_no_run() -> None:
    tables = tables_of({"nccl.log": NCCL})
    assert (tables["runs"].height, tables["files"]["kind"].to_list()) == (0, ["nccl"])


def test_what_a_scheduler_says_of_a_failure_is_a_run() -> None:
    text = "slurmstepd: error: Detected 1 oom_kill event in StepId=17.0. Some of the step tasks have been OOM Killed.\n"
    assert only_run(tables_of({"job.err": text}))[1] == "host_oom"


def test_a_text_is_judged_by_all_of_it() -> None:
    sample = pl.DataFrame({"line_no": [1, 900], "text": ["Collecting torch==2.4.0", "epoch 1, step 20, loss 2.5"]})
    assert kind_of(sample, is_named_log=True).is_training


LOADING = "[2025-07-06 21:00:36,831] INFO: Loading tokenizer\n[2025-07-06 21:00:36,959] INFO: Loading base model\n"


@pytest.mark.parametrize(
    ("name", "text", "runs"),
    [
        ("train_lora.log", LOADING, 1),
        ("finetune.out", "Img No. 0\nTraining Accuracy: 0.46\nImg No. 100\nTraining Accuracy: 0.59\n", 1),
        ("wandb/run-20241224_094815-zr8dc7bl/files/output.log", LOADING, 1),
        ("serve.log", LOADING, 0),
        ("train.txt", "the training of a horse takes years\nno horse is like another\n", 0),
        ("train.log", "nothing\nthat tells\nof anything\n", 0),
    ],
)
def test_the_name_of_a_training_s_log_tells_of_one_that_logged_no_step(name: str, text: str, runs: int) -> None:
    assert tables_of({name: text})["runs"].height == runs


SERVED = """\
MODE: vanilla
  File "/opt/sglang/python/sglang/srt/layers/radix_linear_attention.py", line 134, in forward
  File "/opt/sglang/python/sglang/srt/layers/attention/kda_backend.py", line 208, in forward_extend
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.
"""


@pytest.mark.parametrize(
    "text",
    [
        SERVED,
        "INFO:     Waiting for application startup.\nINFO:     Application startup complete.\n"
        "INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)\nline 23: 427394 Killed   uvicorn app\n",
    ],
)
def test_the_use_of_a_model_is_no_training(text: str) -> None:
    assert tables_of({"slurm-17.out": text})["runs"].is_empty()


def test_a_training_that_asks_a_server_is_one() -> None:
    text = SERVED + "Training begins with a learning rate of 1e-6, the loss is that of each token\n"
    assert tables_of({"slurm-17.out": text})["runs"].height == 1
