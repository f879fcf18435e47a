"""The command line as a user meets it: what it says, exit codes, one-line errors."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from sweepscope.pipeline.__main__ import VERBS, build_parser, main
from sweepscope.pipeline.text.json_rows import as_json
from tests.picotron_runs import OOM_TAIL, picotron_run
from tests.pipeline.commands.calls import assert_one_line_error, called, started

pytestmark = pytest.mark.usefixtures("few_views_in_module")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, few_views_in_module: None) -> Path:
    """A home with three ingested runs; read-only for the tests that share it."""
    base = tmp_path_factory.mktemp("cli")
    sweep = base / "sweep"
    picotron_run(sweep, dp=2)
    picotron_run(sweep, dp=4, tokens_per_s=9000.0)
    picotron_run(sweep, dp=8, mbs=8, steps=1, status="oom", tail=OOM_TAIL)
    done = called("ingest", sweep, "--json", "--no-published", home=base / "home")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"] == {"completed": 2, "oom": 1}
    return base / "home"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_and_takes_home_and_json(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        build_parser().parse_args([verb, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "--home" in text
    assert "--json" in text


def test_a_command_imports_no_more_than_it_needs() -> None:
    """What the list of verbs, the arguments of `nccl`, whose helpers begin first, and `store path` may not wait for."""
    program = (
        "import sys; from sweepscope.pipeline.__main__ import build_parser; build_parser({!r}); print(*sys.modules)"
    )
    libraries = {"polars", "numpy", "duckdb", "pyarrow", "dagster"}
    unneeded = {(): libraries, ("nccl",): libraries, ("store",): {"polars", "deltalake"}}
    for verbs, modules in unneeded.items():
        command = [sys.executable, "-c", program.format(verbs)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert not modules & set(done.stdout.split())


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"sweepscope {version('sweepscope')}\n"


@pytest.mark.parametrize("argv", [["--help"], []])
def test_help_and_errors_name_every_verb(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(argv)
    told = capsys.readouterr()
    assert stop.value.code == (0 if argv else 2)
    assert all(verb in told.out for verb in VERBS) if argv else "VERB" in told.err


@pytest.mark.parametrize(("word", "meant"), [("ingset", "Did you mean `sweepscope ingest`? "), ("qqq", "")])
def test_a_verb_that_there_is_not_is_answered_with_the_nearest(
    word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word, "somewhere"]) == 2
    assert capsys.readouterr().err == (
        f"sweepscope: there is no verb {word!r}. {meant}`sweepscope --help` lists the verbs.\n"
    )


def test_a_query_prints_its_rows_alone_and_does_not_wait_for_pyarrow(filled: Path) -> None:
    program = (
        f"import sys; from sweepscope.pipeline.__main__ import main; main(['query', 'select 1 as one', '--format', 'csv', "
        f"'--home', {str(filled)!r}]); sys.exit('pyarrow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\n1\n", "")


def test_query_formats(filled: Path, tmp_path: Path) -> None:
    sql = "select status, count(*) as n from runs group by 1 order by 1"
    assert started("query", sql, "--format", "csv", home=filled).stdout == "status,n\ncompleted,2\noom,1\n"
    assert json.loads(called("query", sql, "--json", home=filled).stdout)[1] == {"status": "oom", "n": 1}
    assert "completed" in called("query", sql, home=filled).stdout
    out = tmp_path / "result.parquet"
    assert called("query", sql, "--format", "parquet", "--out", out, home=filled).returncode == 0
    assert pl.read_parquet(out).height == 2
    arrow = tmp_path / "result.arrow"
    assert called("query", sql, "--format", "arrow", "--out", arrow, home=filled).returncode == 0
    assert pa.ipc.open_file(arrow).read_all().to_pylist() == pl.read_parquet(out).to_dicts()


def test_a_table_too_wide_to_draw_says_how_to_see_it_whole(filled: Path) -> None:
    hint = "Cells are wrapped"
    assert hint in called("query", "select * from runs", home=filled).stdout
    for rows in (0, 1, 50, 51, 60):
        assert hint not in called("query", f"select i as number from range({rows}) t(i)", home=filled).stdout


def test_home_option_beats_the_environment(filled: Path, tmp_path: Path) -> None:
    done = called("query", "select count(*) as n from runs", "--home", filled, "--format", "csv", home=tmp_path / "no")
    assert done.stdout == "n\n3\n"


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("select nothing_here from runs", "nothing_here"),
        ("select nothing_here from runs", "`describe runs`"),
        ("select * from runz", "`show tables`"),
        ("drop table runs", "read-only"),
        ("copy runs to 'out.csv'", "disabled"),
        ("select * from read_csv('/etc/passwd')", "disabled"),
        ("", "no rows"),
    ],
)
def test_a_bad_query_is_one_line(filled: Path, sql: str, says: str) -> None:
    done = called("query", sql, home=filled)
    assert_one_line_error(done, code=1)
    assert says in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["select [1, 2] as both", "--format", "csv"], "csv"),
        (["select interval 1 day as span"], "VARCHAR"),
        (["select [interval 1 day] as spans"], "VARCHAR"),
        (["select union_value(number := 1) as either"], "VARCHAR"),
        (["select 1 as n", "--out", "no/such/folder/x.csv"], "no/such/folder/x.csv"),
        (["select 1 as n", "--format", "parquet", "--out", "no/such/folder/x.parquet"], "no/such/folder/x.parquet"),
    ],
)
def test_a_result_that_cannot_be_written_says_why(
    filled: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", *arguments, "--home", str(filled)]) in (1, 2)
    error = capsys.readouterr().err
    assert says in error
    assert "internal error" not in error


def test_simulate_where_nothing_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    assert main(["simulate", str(tmp_path / "file" / "sweep"), "--runs", "1"]) == 1
    assert str(tmp_path / "file" / "sweep") in (error := capsys.readouterr().err)
    assert "internal error" not in error


def test_a_demo_cut_short_writes_its_sweep_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sweepscope.pipeline.commands import demo

    def cut_short(directory: Path, **_options: object) -> None:
        directory.mkdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(demo, "write_sweep", cut_short)
        with pytest.raises(KeyboardInterrupt):
            demo.demo_sweep(tmp_path)
    monkeypatch.setattr(demo, "DEMO_RUNS", 2)
    assert len(list(demo.demo_sweep(tmp_path).glob("*/*/*/"))) == 2


def test_store_verbs(filled: Path) -> None:
    path = called("store", "path", home=filled).stdout.strip()
    assert path == str(filled / "store" / "results.duckdb")  # a name that stays, whatever is published later
    assert duckdb.connect(path, read_only=True).sql("SELECT count(*) FROM runs").fetchall()[0][0] > 0
    versions = json.loads(called("store", "versions", "--json", home=filled).stdout)
    assert [row["path"] for row in versions if row["is_current"]] == [str(Path(path).resolve())]
    assert json.loads(called("store", "path", "--json", home=filled).stdout)["file"] == str(Path(path).resolve())
    assert called("store", "verify", home=filled).returncode == 0


def test_missing_path(tmp_path: Path) -> None:
    done = called("ingest", tmp_path / "nowhere", home=tmp_path / "home")
    assert_one_line_error(done, "nowhere", "Give a run directory", code=2)


def test_empty_directory(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = called("ingest", tmp_path / "empty", home=tmp_path / "home")
    assert_one_line_error(done, "empty", "Give a directory", code=2)


def test_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("not a directory")
    done = called("query", "select 1", home=tmp_path / "home")
    assert_one_line_error(done, str(tmp_path / "home"), code=2)


def test_no_store_yet_says_what_to_run(tmp_path: Path) -> None:
    done = called("query", "select 1", home=tmp_path / "home")
    assert_one_line_error(done, "sweepscope ingest", code=1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read any file, so there is no unreadable one")
def test_unreadable_file_is_recorded_and_the_rest_is_read(tmp_path: Path) -> None:
    run = picotron_run(tmp_path / "sweep")
    picotron_run(tmp_path / "sweep", dp=4)
    (run / "log_1001.out").chmod(0)
    done = called("ingest", tmp_path / "sweep", "--json", "--no-published", home=tmp_path / "home")
    result = json.loads(done.stdout)
    assert done.returncode == 0
    assert result["files"]["rejected"] == 1
    assert "permission denied" in result["rejected_files"][0]["error"]


def test_a_binary_file_and_a_line_of_40_mb_cost_nothing_else(tmp_path: Path) -> None:
    run = picotron_run(tmp_path / "sweep")
    (tmp_path / "sweep" / "core.log").write_bytes(b"\x7fELF" + bytes(range(256)) * 64)
    with (run / "log_1001.out").open("ab") as handle:
        handle.write(b"x" * (40 << 20))
    done = called("ingest", tmp_path / "sweep", "--json", "--no-published", home=tmp_path / "home")
    result = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert result["runs"] == {"completed": 1}
    (rejected,) = result["rejected_files"]
    assert "binary" in rejected["error"]
    rejects = called("query", "select reason from rejects", "--format", "csv", home=tmp_path / "home").stdout
    assert "16 MiB" in rejects


def test_runs_that_a_table_repeats_are_counted_once(tmp_path: Path) -> None:
    names = [picotron_run(tmp_path / "sweep", dp=dp).name for dp in (2, 4)]
    rows = [f"{name},{dp},9000,ok" for name, dp in zip([*names, "lost"], (2, 4, 8), strict=True)]
    (tmp_path / "sweep" / "results.csv").write_text("\n".join(["run,dp,tok/s/gpu,status", *rows]))
    done = called("ingest", tmp_path / "sweep", "--json", "--no-published", home=tmp_path / "home")
    result = json.loads(done.stdout)
    assert (result["runs"], result["copies"]) == ({"completed": 3}, 2)


def test_what_was_not_understood_is_told_with_the_remedy(tmp_path: Path) -> None:
    for name in ("one", "two"):
        log = tmp_path / "sweep" / name / "train.log"
        log.parent.mkdir(parents=True)
        log.write_text("upd#1 :: xent=11.02 dt=1.52s\n")
    with (picotron_run(tmp_path / "sweep") / "log_1001.out").open("ab") as handle:
        handle.write(b"x" * (17 << 20))
    home = tmp_path / "home"
    done = called("ingest", tmp_path / "sweep", "--no-published", home=home)
    assert "rejects  1 line or row did not parse: `select * from rejects`" in done.stdout
    (told,) = [line for line in done.stdout.splitlines() if line.startswith("unknown")]
    assert "no dialect knows a line of 2 logs" in told
    assert f"{tmp_path}/sweep/one/train.log" in told
    assert "sweepscope dialect example" in told
    again = called("ingest", tmp_path / "sweep", "--no-published", "--json", home=home)
    assert json.loads(again.stdout)["unknown_logs"] == []


def test_port_in_use(filled: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = called("dashboard", "--port", str(port), home=filled)
    assert_one_line_error(done, str(port), "--port", code=2)


@pytest.mark.parametrize("workers", ["0", "1000"])
def test_ingest_wants_a_number_of_workers_that_can_be(tmp_path: Path, workers: str) -> None:
    done = called("ingest", tmp_path, "--workers", workers, home=tmp_path / "home")
    assert_one_line_error(done, f"--workers must be between 1 and 64, not {workers}", code=2)


@pytest.mark.parametrize(
    ("argv", "said", "helped"),
    [
        ([], "required: VERB", ""),
        (["ingest"], "required: PATH", "ingest "),
        (["query", "select 1", "--format", "xml"], "invalid choice: 'xml'", "query "),
        (["dialect", "test", "x.toml"], "required: LOG", "dialect test "),
    ],
)
def test_wrong_usage_is_exit_code_2(
    argv: list[str], said: str, helped: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert said in told[0]
    assert told[0].endswith(f"`sweepscope {helped}--help` shows the usage.")


def test_an_interrupt_while_a_verb_is_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sweepscope.pipeline.__main__.verb", interrupt)
    assert main(["query", "select 1"]) == 130
    assert capsys.readouterr().err == "sweepscope: interrupted\n"


def test_an_internal_error_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from sweepscope.pipeline.store import published

    def fail(*_args: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(published, "current", fail)
    monkeypatch.setattr("sweepscope.pipeline.commands.query.current", fail)
    assert main(["query", "select 1"]) == 1
    assert "internal error: RuntimeError: boom" in capsys.readouterr().err


def test_an_unknown_option_names_the_help_of_its_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "path", "--no-such"]) == 2
    told = capsys.readouterr().err
    assert told == "sweepscope: unrecognized arguments: --no-such. `sweepscope store --help` shows the usage.\n"


def test_json_has_every_number_and_keeps_unknown_apart_from_not_finite() -> None:
    rows = duckdb.sql(
        "SELECT sum(n) AS total, 1.25::DECIMAL(5, 2) AS price, 'inf'::DOUBLE AS rate, NULL::DOUBLE AS unknown,"
        " ['nan'::DOUBLE, 2.0] AS list, DATE '2024-05-27' AS day FROM range(3) r(n)"
    ).pl()
    assert json.loads(as_json(rows)) == [
        {"total": 3, "price": 1.25, "rate": "Infinity", "unknown": None, "list": ["NaN", 2.0], "day": "2024-05-27"}
    ]
    wide = duckdb.sql("SELECT 1267650600228229401496703205376::HUGEINT AS n").pl()
    assert json.loads(as_json(wide)) == [{"n": 2**100}]
    assert as_json(rows.clear()) == "[]"


def test_plain_rows_are_the_same_json_whatever_stands_beside_them() -> None:
    moment = duckdb.sql("SELECT TIMESTAMP '2024-05-27 10:00:00.5' AS ts, 'ä' AS text, 1 AS n").pl()
    (alone,) = json.loads(as_json(moment))
    (beside,) = json.loads(as_json(moment.with_columns(rate=pl.lit(float("nan")))))
    assert beside == {**alone, "rate": "NaN"}
