"""What Weights & Biases keeps beside a log: `config.yaml` and `wandb-metadata.json`."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.logs.sidecars.wandb_files import read_config, read_metadata
from tests.pipeline.ingest_in_memory import tables_of

CONFIG = """\
wandb_version: 1

_wandb:
  desc: null
  value:
    python_version: 3.9.18
    batch_size: 7
batch_size:
  desc: null
  value: 64
block_size:
  value: 256
gradient_accumulation_steps:
  value: 4
max_steps:
  value: -1
n_layer:
  value: 6
model:
  value:
    hidden_size: 512
bf16:
  value: true
max_length:
  value: 20
"""
METADATA = '{"host": "node1", "startedAt": "2026-01-31T12:00:00Z", "gpu": "NVIDIA A100-SXM4-80GB", "gpu_count": 8}'


def test_names_have_their_values() -> None:
    assert read_config(CONFIG) == {
        "mbs": "64",
        "seq_len": "256",
        "gas": "4",
        "num_layers": "6",
        "hidden_size": "512",
        "precision": "bf16",
    }


def test_a_value_that_is_stated_in_two_ways_is_unknown() -> None:
    config = CONFIG + "num_layers:\n  value: 12\nfp16:\n  value: true\n"
    assert {"num_layers", "precision"}.isdisjoint(read_config(config))


@pytest.mark.parametrize("text", ["batch_size: 64\n", "batch_size:\n  value: 64\n"])
def test_another_configuration_says_nothing(text: str) -> None:
    assert read_config(text) == {}


def test_the_machine_has_its_accelerators() -> None:
    assert read_metadata(METADATA) == {"accelerator": "NVIDIA A100-SXM4-80GB", "gpus_per_node": "8"}
    with pytest.raises(ValueError, match="W&B"):
        read_metadata('{"gpu": "NVIDIA A100"}')


@pytest.mark.parametrize("log", ["wandb/run-20260131_120000-1a2b3c4d/files/output.log", "train.log"])
def test_a_run_gets_what_its_folder_keeps(log: str) -> None:
    text = "".join(f"step {step}: loss {5 - step / 50:.4f}\n" for step in range(60))
    folder = "sweep/run7/"
    files = {
        folder + "wandb/run-20260131_120000-1a2b3c4d/files/config.yaml": CONFIG,
        folder + "wandb/run-20260131_120000-1a2b3c4d/files/wandb-metadata.json": METADATA,
    }
    (run,) = tables_of({folder + log: text, **files})["runs"].to_dicts()
    assert (run["mbs"], run["gas"], run["num_layers"], run["precision"]) == (64, 4, 6, "bf16")
    assert run["gpus_per_node"] == 8
