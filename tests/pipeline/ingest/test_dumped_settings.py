"""Configurations that unknown trainers print into their logs, whose names mean something by their sections only."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.pipeline.logs.inference.test_infer import FORMS, log, tables_of

SECTIONS: dict[str, dict[str, Any]] = {
    "model": {"arch": "orca-13b", "layers": 40, "hidden": 5120},
    "parallel": {"tensor": 2, "pipeline": 2, "data": 8, "zero": 1},
    "batch": {"global_sequences": 256, "micro_sequences": 2, "accumulation": 16, "sequence_length": 4096},
    "hardware": {"accelerators": "32 x AMD Instinct MI300X", "nodes": 4},
}
WANTED = {"tp": 2, "pp": 2, "dp": 8, "zero_stage": 1, "gbs": 256, "mbs": 2, "gas": 16, "seq_len": 4096}
ON = {"num_gpus": 32, "num_nodes": 4}


def as_yaml(sections: dict[str, dict[str, Any]]) -> str:
    return "".join(
        f"{section}:\n" + "".join(f"  {name}: {value}\n" for name, value in values.items())
        for section, values in sections.items()
    )


def prefixed(text: str, prefix: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize("prefix", ["", "2026-11-20T09:41:00.000000Z stdout F ", "[rank0]: "])
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_block_with_sections_states_settings_whatever_stands_before_its_lines(form: str, prefix: str) -> None:
    block = as_yaml(SECTIONS) if form == "yaml" else json.dumps(SECTIONS, indent=2) + "\n"
    text = prefixed(log(FORMS["words"], head=f"============ orca run\n{block}============\n"), prefix)
    (run,) = tables_of({"train.log": text})["runs"].to_dicts()
    assert {name: run[name] for name in (*WANTED, *ON)} == WANTED | ON
    assert "MI300X" in run["accelerator"]


def test_each_launch_of_one_log_has_the_settings_of_its_own_block() -> None:
    launches = []
    for tensor in (2, 4):
        own = {**SECTIONS, "parallel": {"tensor": tensor, "pipeline": 2, "data": 16 // tensor, "zero": 1}}
        launches.append(log(FORMS["words"], head=f"orca run begins on the cluster\n{as_yaml(own)}"))
    runs = tables_of({"train.log": "".join(launches)})["runs"].sort("attempt")
    assert runs.select("tp", "dp", "mbs").rows() == [(2, 8, 2), (4, 4, 2)]


def test_what_a_line_states_by_itself_counts() -> None:
    text = log(FORMS["words"], head=f"tensor_parallel_size=8\n{as_yaml(SECTIONS)}")
    (run,) = tables_of({"train.log": text})["runs"].to_dicts()
    assert (run["tp"], run["pp"]) == (8, 2)


def test_the_script_above_torchruns_folders_states_what_was_launched() -> None:
    script = (
        "#!/bin/bash\n#SBATCH --nodes=1\nexport OMP_NUM_THREADS=8\n"
        "torchrun --nproc-per-node 4 --log-dir logs train.py --tensor-parallel-size 2 --micro-batch-size 2 \\\n"
        "  --seq-length 4096 --global-batch-size 16\n"
    )
    folder = "logs/none_8kx2_1ab/attempt_0"
    files = {f"{folder}/{rank}/stdout.log": "a worker\n" for rank in range(1, 4)}
    files |= {"cmd.sh": script, f"{folder}/0/stdout.log": log(FORMS["words"])}
    (run,) = tables_of(files)["runs"].to_dicts()
    names = ("gpus_per_node", "num_nodes", "tp", "mbs", "gbs", "seq_len", "last_step")
    assert [run[name] for name in names] == [4, 1, 2, 2, 16, 4096, 40]
