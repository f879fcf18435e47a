"""Options of a file: the command line counts more than the environment, and that more than the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pipeline.commands.calls import Done, called


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SWEEPSCOPE_HOME", raising=False)
    monkeypatch.delenv("SWEEPSCOPE_CONFIG", raising=False)
    path = tmp_path / "config" / "sweepscope" / "sweepscope.toml"
    path.parent.mkdir(parents=True)
    return path


def store_path(*args: str, home: Path | None = None) -> str:
    done = called("store", "path", *args, home=home)
    return (done.stdout + done.stderr).strip()


def test_the_file_gives_what_neither_command_line_nor_environment_do(config: Path, tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("of_file", "of_environment", "of_command")]
    config.write_text(f'home = "{homes[0]}"\n')
    assert str(homes[0]) in store_path()
    assert str(homes[1]) in store_path(home=homes[1])
    assert str(homes[2]) in store_path("--home", str(homes[2]), home=homes[1])


def search(*more: str) -> Done:
    return called("search", "--model", "Llama 3 8B", "--nodes", "1", "--seq-len", "4096", *more)


def test_options_of_a_verb_are_those_of_the_file_unless_given(config: Path) -> None:
    config.write_text('[search]\naccelerator = "A100-SXM-80GB"\ngbs-tokens = 1048576\njson = true\n')
    of_file, given = (json.loads(done.stdout) for done in (search(), search("--accelerator", "H100-SXM-80GB")))
    assert given == json.loads(search("--accelerator=H100-SXM-80GB").stdout)
    times = [value["layouts"][0]["est_step_time_s"] for value in (of_file, given)]
    assert times[0] > 1.5 * times[1], "an A100 is slower than an H100"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[serach]\ntop = 3\n", "there is no verb 'serach'. Did you mean 'search'?"),
        ("[search]\nacelerator = 'A100'\n", "search has no option 'acelerator'. Did you mean 'accelerator'?"),
        ("[search]\njson = 'yes'\n", "json is 'yes'. Write true or false."),
        ("[search]\nmodel = true\n", "model is True. Write a text or a number."),
        ("home = [[]]\n", "home is [[]]. Write a text or a number."),
        ("home = \n", "is not TOML"),
    ],
)
def test_a_fault_of_the_file_is_named(config: Path, text: str, message: str) -> None:
    config.write_text(text)
    done = search()
    assert done.returncode == 2
    assert done.stderr.startswith(f"sweepscope: {config}")
    assert message in done.stderr


def test_a_file_that_is_named_and_not_there(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPSCOPE_CONFIG", "/nowhere.toml")
    assert "SWEEPSCOPE_CONFIG names /nowhere.toml, which is no file." in search().stderr


def test_other_verbs_and_the_help_do_not_mind(config: Path) -> None:
    config.write_text("[search]\nworkers = 3\n[ingest]\nworkers = 2\n")
    assert called("dialect", "list").returncode == 0
