"""Which files of a tree are of one run: what trainers, launchers and their users leave, and sweeps of it."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.ingest.discover import discover
from sweepscope.pipeline.io.files import Entry

HISTORY, STATE = "metrics.csv", "trainer_state.json"


def runs(text: str) -> list[set[str]]:
    """Files of each unit that has a log or a file of steps; `text` names the files."""
    found = discover([Entry(f"/s/{path}", 10, 1.5) for path in text.split()], is_simulated=lambda _: False)
    units: dict[str, set[str]] = {}
    for path, unit in found.select("path", "unit").iter_rows():
        units.setdefault(unit, set()).add(path.removeprefix("/s/"))
    tells = found.filter(found["kind"].is_in(["log", "history"]))["unit"]
    return sorted((units[unit] for unit in set(tells)), key=sorted)


def launches(text: str) -> dict[str, str]:
    found = discover([Entry(f"/s/{path}", 10, 1.5) for path in text.split()], is_simulated=lambda _: False)
    return {path.removeprefix("/s/"): launch for path, launch in found.select("path", "launch").iter_rows()}


@pytest.mark.parametrize(
    "files",
    [
        f"train.log out/{STATE} out/train_results.json out/config.json",  # transformers with output_dir=out
        f"train.log gpt2-small/{STATE} gpt2-small/config.json",  # ... named after the model
        "train.log out/config.json",  # TRL saves the model at the end
        f"train.log out/checkpoint-500/{STATE} out/checkpoint-1000/{STATE}",
        f"train.log lightning_logs/version_0/{HISTORY} lightning_logs/version_0/hparams.yaml",
        f"train.log lightning_logs/version_0/{HISTORY} lightning_logs/version_1/{HISTORY}",
        f"train.log out/logs/csv/version_0/{HISTORY} out/hyperparameters.yaml",  # litgpt
        f"train.log csv/version_0/{HISTORY} out/{STATE}",
        f"logs/train.log out/{STATE}",
        f"logs/train.out logs/train.err out/{STATE}",
        "logs/train.log config.json",
        f"outputs/2026-01-01/12-00-00/train.log outputs/2026-01-01/12-00-00/version_0/{HISTORY}",  # Hydra
        f"train.log outputs/2026-01-01/12-00-00/{HISTORY}",
        "train.log wandb/run-20260101_120000-1a2b3c4d/files/output.log",
        "wandb/run-20260101_120000-1a2b3c4d/files/output.log config.json",
        "rank_0/train.log rank_1/train.log rank_2/train.log",
        "node0/rank_0/train.log node0/rank_1/train.log node1/rank_2/train.log node1/rank_0/train.log",
        f"rank_0/train.log rank_1/train.log out/{STATE}",
        "rank0.log rank1.log rank2.log",
        "train_rank0.log train_rank8.log train_rank16.log",
        "stdout.log stderr.log",
        "train.log slurm-4711.out slurm-4711.err",
        "train.log slurm-4711.out slurm-4712.out config.json",
        "train.log nohup.out",
        f"train.log console.txt out/{STATE}",
        "train.log train.o4711 train.e4711",
        "attempt_0/0/stdout.log attempt_0/0/stderr.log attempt_0/1/stdout.log attempt_0/1/stderr.log",
        "attempt_0/0/stdout.log attempt_1/0/stdout.log",
        "train.log logs/none_x1y2/attempt_0/0/stderr.log".replace("none_x1y2/", ""),
        f"train.log logs/rank0.log logs/rank1.log out/{STATE}",
        f"{HISTORY} checkpoints/config.json",
        f"config.json out/{STATE}",
    ],
)
def test_everything_of_a_run_is_one_run(files: str) -> None:
    assert runs(files) == [set(files.split())]


LAYOUTS = (
    "{run}/train.log",
    "{run}/train.log {run}/config.json",
    f"{{run}}/train.log {{run}}/out/{STATE} {{run}}/out/config.json",
    f"{{run}}/train.log {{run}}/lightning_logs/version_0/{HISTORY} {{run}}/lightning_logs/version_0/hparams.yaml",
    f"{{run}}/logs/train.log {{run}}/out/{STATE}",
    "{run}/rank_0/train.log {run}/rank_1/train.log",
    "{run}/logs/rank0.log {run}/logs/rank1.log {run}/config.json",
    f"{{run}}/{HISTORY}",
    f"{{run}}/out/{STATE} {{run}}/out/checkpoint-500/{STATE} {{run}}/out/checkpoint-500/config.json",
    "{run}.log",
    "{run}.out {run}.err",
    "{run}/train.log {run}/slurm-4711.out",
    f"{{run}}.log {{run}}/out/{STATE}",
    f"{{run}}.log {{run}}/{HISTORY} {{run}}/config.json",
    f"lightning_logs/{{run}}/{HISTORY}",
)
NAMES = {
    "layouts": ["tp1", "tp2", "tp4_pp2"],
    "nodes": ["node1", "node2", "node4"],
    "LoRA ranks": ["rank8", "rank16", "rank32"],
    "numbers": ["1", "2", "3"],
    "experiments": ["exp_a", "exp_b", "exp_c"],
    "outputs": ["out_1", "out_2", "out_3"],
    "many": [f"run_{number}" for number in range(20)],
}


@pytest.mark.parametrize("beside", ["", "launch.log", "README.md", "sweep.yaml", "sacct.txt"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_a_sweep_of_runs_is_as_many(names: list[str], layout: str, beside: str) -> None:
    each = [set(layout.format(run=f"sweep/{name}").split()) for name in names]
    found = runs(" ".join([*(file for files in each for file in sorted(files)), *([f"sweep/{beside}"] * bool(beside))]))
    assert [files for files in found if not any("sweep/launch" in file for file in files)] == sorted(each, key=sorted)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_run_alone_is_the_same_unit_as_in_its_sweep(layout: str) -> None:
    def unit(*names: str) -> set[str]:
        files = [file for name in names for file in layout.format(run=f"/s/{name}").split()]
        found = discover([Entry(file, 10, 1.5) for file in files], is_simulated=lambda _: False)
        return set(found.filter(found["path"].str.contains("tp2"))["unit"])

    if "{run}/" not in layout.replace("lightning_logs/{run}/", ""):
        return  # a log has no folder of its own
    assert unit("tp2") == unit("tp1", "tp2", "tp4")


def test_runs_of_which_one_alone_has_no_log_stay_apart() -> None:
    assert len(runs(f"a/train.log b/train.log c/{STATE}")) == 3
    assert len(runs(f"a/train.log b/{STATE}")) == 2


def test_a_configuration_of_other_things_is_not_taken_from_afar() -> None:
    assert runs("train.log some/package/of/mine/config.json") == [{"train.log"}]
    assert runs("train.log a/config.json b/config.json") == [{"train.log"}]  # whose?


def test_a_log_in_a_folder_of_its_own_tells_of_another_launch() -> None:
    files = "train.log attempt_0/0/stdout.log attempt_0/1/stdout.log attempt_1/0/stdout.log"
    assert launches(files) == {
        "train.log": "",
        "attempt_0/0/stdout.log": "attempt_0",
        "attempt_0/1/stdout.log": "attempt_0",
        "attempt_1/0/stdout.log": "attempt_1",
    }


def test_a_log_in_another_folder_is_another_run() -> None:
    assert runs("train.log eval/eval.log") == [{"eval/eval.log"}, {"train.log"}]


def test_nothing_is_no_run() -> None:
    assert runs("README.md out/notes.md") == []
