"""`sweepscope dialect` and `--dialect`, as a user meets them; and the examples of docs/dialects.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.commands.dialect import example
from sweepscope.pipeline.commands.dialect_report import cut
from sweepscope.pipeline.ingest.dialect_files import remember
from sweepscope.pipeline.logs import bundled
from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.declared.explain import explain
from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.text import lines
from tests.acme import CONFIG, DIALECT, LOG
from tests.paths import ROOT

pytestmark = pytest.mark.usefixtures("few_views_in_module")

PAGE = (ROOT / "docs" / "dialects.md").read_text(encoding="utf-8")


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    path = tmp_path / "acme.toml"
    path.write_text(DIALECT)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.yaml").write_text(CONFIG)
    (run / "train.log").write_text(LOG)
    return run / "train.log"


def test_a_log_that_fits(acme: Path, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dialect", "test", str(acme), str(log)]) == 0
    out = capsys.readouterr().out
    assert "read by acme: '[acme-trainer]' 1 times" in out
    assert "steps     3, and 0 lines" in out
    assert "run.yaml  pp 2, model acme-7b" in out
    assert "= step 1, steps_planned 3, loss 9.25, step_time_s 1.412" in out


def test_the_mark_stands_below_the_word_that_stopped_the_pattern(
    acme: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = f"{'x ' * 60}step 2/3 | loss ERR | 412.5ms | 1.1M tok/s | mem 41GiB"
    log.write_text(LOG + "\x1b[31mstep 2/3 | loss ERR | 412.5ms | 1.1M tok/s | mem 41GiB\x1b[0m\n" + bad + "\n")
    assert main(["dialect", "test", str(acme), str(log)]) == 0
    shown = capsys.readouterr().out.splitlines()
    marks = [
        (at, line.index("^^^"))
        for at, line in enumerate(shown)
        if "^^^ nearly, a reject: stops here, wanted {loss}" in line
    ]
    assert len(marks) == 2
    assert [shown[at - 1][place : place + 3] for at, place in marks] == ["ERR", "ERR"]
    assert max(len(shown[at - 1]) for at, _ in marks) < 130


def test_a_log_that_does_not_fit_is_exit_1_and_json_says_why(
    acme: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log.write_text("| Tokens/s/GPU: \nTokens per step: 1\nstep 4: all well\n")
    assert main(["dialect", "test", str(acme), str(log.parent), "--json"]) == 1
    (said,) = json.loads(capsys.readouterr().out)
    assert (said["owner"], said["steps"], said["signature"]) == ("picotron", 0, {"[acme-trainer]": 0})
    assert said["rules"][0]["near"][0]["wanted"] == "'/'"
    assert main(["dialect", "test", str(acme), str(log)]) == 1
    assert "NOT read by acme but by picotron" in capsys.readouterr().out


def test_lists_remembers_and_forgets(acme: Path, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = ["--home", str(tmp_path / "home")]
    assert main(["dialect", "list", *home]) == 0
    assert "No dialect files are remembered." in capsys.readouterr().out
    assert not (tmp_path / "home").exists()
    assert main(["ingest", str(log.parent), "--dialect", str(acme), "--no-published", "--json", *home]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["dialects"], said["runs"]) == (["acme"], {"completed": 1})
    assert main(["dialect", "list", "--json", *home]) == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert listed["acme"]["given_as"] == str(acme)
    assert listed["picotron"]["file"] is None
    assert main(["dialect", "forget", "acme", *home]) == 0
    assert main(["dialect", "forget", "acme", *home]) == 2
    assert "No dialect file called 'acme' is remembered" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["ingest", "watch", "serve", "dialect test"])
def test_a_file_with_a_fault_is_one_line_and_exit_2(
    verb: str, acme: Path, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    acme.write_text(DIALECT.replace("{loss}", "{los}"))
    files = [str(acme), str(log)] if verb == "dialect test" else ["--dialect", str(acme), str(log)]
    assert main([*verb.split(), *files, "--home", str(tmp_path / "home")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"sweepscope: {acme}:5: [[step]] 1: los is no column here. Did you mean loss?")
    assert error.count("\n") == 1
    assert not (tmp_path / "home" / "dialects" / "index.json").exists()


def test_a_file_that_cannot_be_read(tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    for name, said in (("gone.toml", "No such file"), (".", "Is a directory"), ("bytes.toml", "not text in UTF-8")):
        assert main(["dialect", "test", str(tmp_path / name), str(log)]) == 2
        assert said in capsys.readouterr().err


def test_the_example_can_be_saved_and_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dialect", "example"]) == 0
    assert capsys.readouterr().out == example()
    assert read_document(example(), "example.toml").name == "acme"


def test_the_worked_example_of_the_page_reads_its_log() -> None:
    text = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
    log = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0]
    said = explain(cleaning.clean(lines.split(0, log.encode())), read_document(text, "page"), DIALECTS)
    assert (said.owner, said.steps, said.rejects) == ("acme", 2, 0)
    assert said.settings == {"tp": "8", "pp": "2", "mbs": "4"}
    assert all(rule.lines for rule in said.rules)


def test_further_examples_of_the_page_are_rules() -> None:
    head = 'name = "acme"\nsignature = ["[acme-trainer]"]\n'
    for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1:]:
        step = "" if "[[step]]" in text else "[[step]]\nline = 'step {step}'\n"
        assert read_document(head + step + text, "page").steps


def test_the_page_names_every_unit_and_step_column() -> None:
    from sweepscope.pipeline.logs.declared.columns import STEP_COLUMNS
    from sweepscope.pipeline.logs.declared.units import KINDS

    assert [word for word in (*KINDS, *STEP_COLUMNS) if f"`{word}`" not in PAGE] == []


def test_long_lines_are_cut_around_the_mark() -> None:
    text = "a" * 300 + "HERE" + "b" * 300
    shown, at = cut(text, 300)
    assert shown[at : at + 4] == "HERE"
    assert len(shown) < 120
    assert cut("x\ty", 2) == ("x y", 2)


def test_bundled_files_are_shown_and_a_remembered_one_of_the_name_instead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, home = bundled.NAMES[0], str(tmp_path / "home")
    assert main(["dialect", "show", name, "--home", home]) == 0
    assert capsys.readouterr().out.rstrip("\n") == bundled.text_of(name).rstrip("\n")
    own = tmp_path / "own.toml"
    own.write_text(bundled.text_of(name) + "# mine\n")
    remember(Home(Path(home)), [str(own)])
    assert main(["dialect", "show", name, "--home", home]) == 0
    assert capsys.readouterr().out.endswith("# mine\n")
    assert main(["dialect", "list", "--home", home, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [bool(one["file"]) for one in listed if one["name"] == name] == [True]
    assert main(["dialect", "show", "megatron", "--home", home]) == 2
    assert "is written in code. Dialect files there are: " in capsys.readouterr().err


def test_the_file_that_a_log_of_no_known_format_is_read_by_is_printed_and_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "hobby.log"
    log.write_text(
        "".join(f"hobbytrain it {n}/40 :: xent={9 - n / 9:.3f} dt={400 + n % 3}.5ms\n" for n in range(1, 31))
    )
    assert main(["dialect", "infer", str(log)]) == 0
    own = tmp_path / "mine.toml"
    own.write_text(capsys.readouterr().out)
    assert main(["dialect", "test", str(own), str(log), "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert len(result["steps"] if isinstance(result["steps"], list) else range(result["steps"])) == 30
    notes = tmp_path / "notes.log"
    notes.write_text("hello\n")
    assert main(["dialect", "infer", str(notes)]) == 2
    assert "`sweepscope dialect example`" in capsys.readouterr().err
