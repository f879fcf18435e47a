"""Completion scripts: bash completes with its script what the parsers know; the others hold the same."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from sweepscope.pipeline.__main__ import VERBS, build_parser, main
from sweepscope.pipeline.commands.completion import bash_script, commands, fish_script, zsh_script


@pytest.fixture(scope="module")
def script() -> str:
    return bash_script(list(commands(build_parser(VERBS))))


def completed(script: str, *words: str) -> list[str]:
    """What bash offers after these words, the last of which is being typed."""
    ask = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sweepscope; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{ask}", "bash", "sweepscope", *words],
        capture_output=True,
        text=True,
        check=True,
        cwd="/usr",
    )
    assert not done.stderr
    return [line for line in done.stdout.splitlines() if line]


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@needs_bash
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("in",), ["ingest"]),
        (("pl",), ["plan"]),
        (("plan", "la"), ["launch"]),
        (("plan", "launch", "--fra"), ["--framework"]),
        (("report", "--format", ""), ["html", "md"]),
        (("--home", "x", "query", "--format", "c"), ["csv"]),
        (("completion", "z"), ["zsh"]),
        (("ingest", "bi"), ["bin"]),
        (("report", "--out", "bi"), ["bin"]),
        (("nonsense", "--no"), []),
    ],
    ids=" ".join,
)
def test_bash_completes(script: str, words: tuple[str, ...], found: list[str]) -> None:
    assert completed(script, *words) == found


@needs_bash
def test_every_verb_and_every_option_is_offered(script: str) -> None:
    assert set(VERBS) <= set(completed(script, ""))
    for name in VERBS:
        (command,) = [one for one in commands(build_parser((name,))) if one.path == name]
        options = {option for one in command.options for option in one.names if option.startswith("--")}
        assert set(completed(script, name, "--")) == options


def test_zsh_reads_the_same_functions_and_fish_has_every_verb(script: str) -> None:
    found = list(commands(build_parser(VERBS)))
    assert zsh_script(found).endswith(script)
    lines = fish_script(found).splitlines()
    for name in VERBS:
        assert any(f" -f -a {name} -d " in line for line in lines)
    assert all(line.count("'") % 2 == 0 for line in lines)
    assert any("-l format" in line and "-x -a 'html md'" in line for line in lines)


def test_the_command_prints_the_script(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out == f"{script}\n"
    assert main(["completion", "bash", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"shell": "bash", "script": script}
    with pytest.raises(SystemExit):
        main(["completion", "powershell"])
