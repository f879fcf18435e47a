"""`sweepscope dialect infer`: correct what was inferred, keep it, and read the logs by it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from tests.unknown_trainer import write_sweep

pytestmark = pytest.mark.usefixtures("few_views_in_module")

CORRECTIONS = [
    *("--name", "zephyr", "--set", "took=step_time:s", "--set", "micro_batch=_"),
    *("--constant", "gbs=4", "--constant", "seq_len=2048", "--constant", "num_gpus=8"),
]


def runs(home: Path) -> pl.DataFrame:
    return Lake(Home(home)).read("runs").sort("source_path")


def test_ingest_correct_ingest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole loop: values that were unknown are there after the next ingest, and nothing is read a third time."""
    logs, home = write_sweep(tmp_path / "sweep"), tmp_path / "home"
    ingest = ["ingest", str(tmp_path / "sweep"), "--no-published", "--json", "--home", str(home)]
    assert main(ingest) == 0
    assert runs(home)["tokens_per_s_per_gpu"].to_list() == [None] * 3
    save = ["dialect", "infer", str(logs[0]), "--save", *CORRECTIONS, "--folder", str(tmp_path), "--home", str(home)]
    assert main(save) == 0
    assert f"saved  {home}/dialects/zephyr.toml" in capsys.readouterr().out
    assert main(ingest) == 0
    read = runs(home)
    assert read["parser"].to_list() == ["zephyr"] * 3
    assert read["tokens_per_s_per_gpu"].to_list() == pytest.approx([1024 / s for s in (0.4, 0.5, 0.6)])
    assert read["mbs"].to_list() == [None] * 3
    assert Lake(Home(home)).read("inferred_columns").is_empty()
    capsys.readouterr()
    assert main(ingest) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == {}


def test_a_file_put_into_the_home_by_hand_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs, home = write_sweep(tmp_path / "sweep", 1), tmp_path / "home"
    assert main(["dialect", "infer", str(logs[0]), *CORRECTIONS]) == 0
    (home / "dialects").mkdir(parents=True)
    (home / "dialects" / "zephyr.toml").write_text(capsys.readouterr().out)
    ingest = ["ingest", str(tmp_path / "sweep"), "--no-published", "--json", "--home", str(home)]
    assert main(ingest) == 0
    assert runs(home)["framework"].to_list() == ["zephyr"]
    (home / "dialects" / "zephyr.toml").rename(home / "dialects" / "other.toml")
    assert main(ingest) != 0
    assert "Rename it to zephyr.toml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["--set", "foo=loss"], "'foo' is not among the values. There are: it, micro_batch, model, nll, q"),
        (["--set", "it=loss"], "'it' names several of the values."),
        (["--set", "took=step_time"], "step_time needs its unit, such as step_time:s."),
        (["--set", "took=loss"], "'nll …' and 'took …' are both taken for loss. Keep one of them"),
        (["--set", "took=gbs"], "gbs belongs into a [[setting]]"),
        (["--set", "step 0 step=_"], "numbers the steps, and has to stay step."),
        (["--set", "took"], "'took' is no pair. Write it as NAME=VALUE."),
        (["--constant", "gbs=few"], "gbs is 'few'. Write a number above 0."),
        (["--name", "Megatron"], "name 'Megatron' cannot be used"),
    ],
)
def test_a_correction_that_cannot_be_is_refused(
    given: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (log,) = write_sweep(tmp_path / "sweep", 1)
    home = tmp_path / "home"
    assert main(["dialect", "infer", str(log), "--save", *given, "--home", str(home)]) == 2
    assert reason in capsys.readouterr().err
    assert not (home / "dialects" / "index.json").exists()


def test_another_files_name_is_not_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (log,) = write_sweep(tmp_path / "sweep", 1)
    save = ["dialect", "infer", str(log), "--save", "--home", str(tmp_path / "home")]
    assert main(save) == 0
    assert main(save) == 2
    assert (
        "The home has a dialect file called 'my-trainer'. Give this one a name of its own." in capsys.readouterr().err
    )
