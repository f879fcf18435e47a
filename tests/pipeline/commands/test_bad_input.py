"""Bad input, full disks and interruptions: one line that helps, and nothing is lost.

A process of its own is started where its death, its terminal, its rights or its limits are what is tested.
"""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.commands.ingest import as_text
from sweepscope.pipeline.ingest.summary import Summary
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.maintenance import verify
from sweepscope.pipeline.store.published import connect, current
from tests.picotron_runs import picotron_run
from tests.pipeline.commands.calls import Done, called, started

_COMMAND = (sys.executable, "-m", "sweepscope")
# Root may read everything unless it gives that up.
_UNPRIVILEGED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")

pytestmark = pytest.mark.usefixtures("few_views_in_module")


def started_ingest(path: Path, *, home: Path, prefix: tuple[str, ...]) -> Done:
    return started("ingest", path, "--no-published", "--json", home=home, prefix=prefix)


def assert_refused(done: Done, *parts: str, code: int = 1) -> None:
    assert done.returncode == code, done.stderr
    assert not done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("sweepscope: ")
    assert "internal error" not in line
    for part in parts:
        assert part in line


def settle(*paths: Path | str, home: Path) -> Summary:
    """An ingest before or after the one that is tested, in this process, which has Dagster imported already."""
    return ingest_paths(Home.resolve(str(home)), [str(path) for path in paths], with_published=False)


def assert_sound(home: Path, *, runs: int) -> None:
    """The store matches its lake and shows that many runs."""
    report = verify(Home.resolve(str(home)))
    assert not report.problems
    assert {name: rows for name, rows, _ in report.tables}["runs"] == runs


def rows(home: Path, sql: str) -> list[tuple[object, ...]]:
    """Answer of the published store, read as every reader does."""
    with connect(current(home)) as connection:
        return connection.sql(sql).fetchall()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory, few_views_in_module: None) -> Path:
    """A home with one run; read-only."""
    base = tmp_path_factory.mktemp("bad")
    picotron_run(base / "first")
    settle(base / "first", home=base / "home")
    return base / "home"


@pytest.fixture
def filled(one_run: Path, home: Path) -> Path:
    """The same as a home of the test's own."""
    shutil.copytree(one_run, home, symlinks=True, ignore=shutil.ignore_patterns("batches"))
    return home


@pytest.mark.parametrize(
    ("argv", "says", "code"),
    [
        (["ingest", ""], "empty", 2),
        (["ingest", "nothing://here"], "nothing", 2),
        (["query", "select 1", "--home", ""], "empty", 2),
        (["query", "select 1; select 2"], "one at a time", 1),
        (["query", "select 1", "--out", "/proc/no/where.csv"], "/proc/no/where.csv", 1),
        (["dashboard", "--port", "0"], "--port", 2),
        (["dashboard", "--port", "99999"], "--port", 2),
        (["dashboard", "--host", "192.0.2.1"], "--host", 2),
    ],
)
def test_a_wrong_argument_is_one_line_with_the_remedy(
    *,
    one_run: Path,
    argv: list[str],
    says: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(one_run))
    assert main(argv) == code
    told = capsys.readouterr()
    assert not told.out
    (line,) = told.err.splitlines()
    assert says in line


def test_reading_creates_no_home(home: Path) -> None:
    assert_refused(called("store", "versions", home=home), str(home), "sweepscope ingest")
    assert not home.exists()


def test_what_is_no_file_is_refused_by_name_and_passed_over_in_a_sweep(tmp_path: Path, home: Path) -> None:
    sweep = tmp_path / "sweep"
    picotron_run(sweep)
    os.mkfifo(sweep / "pipe.log")
    (sweep / "gone.log").symlink_to("nowhere.log")
    (sweep / "loop").symlink_to(sweep)
    assert_refused(called("ingest", sweep / "pipe.log", home=home), "pipe.log", code=2)
    assert settle(sweep, home=home).files_seen == 3
    # The same files under a URL: fsspec would wait for the pipe for ever.
    assert settle(f"file://{sweep}", home=home).files_new == 0


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root without setpriv")
def test_what_may_not_be_read_is_told_and_read_once_it_may(tmp_path: Path, home: Path) -> None:
    prefix = _UNPRIVILEGED if os.geteuid() == 0 else ()
    sweep = tmp_path / "sweep"
    picotron_run(sweep)
    closed, log = picotron_run(sweep, dp=4), picotron_run(sweep, dp=8) / "log_1001.out"
    closed.chmod(0)
    log.chmod(0)
    try:
        first = json.loads(started_ingest(sweep, home=home, prefix=prefix).stdout)
    finally:
        closed.chmod(0o755)
        log.chmod(0o644)
    assert {Path(row["path"]) for row in first["rejected_files"]} == {closed, log}
    assert all("Make it readable" in row["error"] for row in first["rejected_files"])
    assert first["rows"].get("steps") == 6, "those of the run that may be read"
    assert settle(sweep, home=home).rows["steps"] == 12
    assert settle(sweep, home=home).files_new == 0
    assert rows(home, "select count(*) from files where status = 'rejected'") == [(0,)]


def test_every_spelling_of_a_path_is_the_same_run(tmp_path: Path, home: Path) -> None:
    sweep = tmp_path / "sweep"
    picotron_run(sweep)
    (tmp_path / "link").symlink_to("sweep")
    assert settle(sweep, home=home).files_new == 3
    others = [f"{tmp_path}/sweep/../sweep", tmp_path / "link", f"{tmp_path}//sweep/."]
    assert settle(*others, home=home).files_new == 0
    assert_sound(home, runs=1)


def test_a_run_behind_a_link_counts_once_in_whatever_order_it_is_met(tmp_path: Path, home: Path) -> None:
    own, best = picotron_run(tmp_path / "sweep"), tmp_path / "best"
    best.mkdir()
    (best / "winner").symlink_to(own)
    assert settle(best, home=home).files_new == 3
    again = settle(tmp_path / "sweep", best, home=home)
    assert again.files_new == 0
    assert again.other_names[str(best / "winner" / "log_1001.out")] == str(own / "log_1001.out")
    assert "3 files have another name through a link and count once" in as_text(again)
    with (own / "log_1001.out").open("a") as log:
        log.write("\n")
    assert settle(tmp_path / "sweep", home=home).files_new == 3
    assert_sound(home, runs=1)


def test_a_log_that_grows_while_it_is_read_is_read_again_to_its_end(tmp_path: Path, home: Path) -> None:
    log = picotron_run(tmp_path / "sweep") / "log_1001.out"
    line = log.read_text().splitlines()[-1].replace("Step: 6 ", "Step: {} ") + "\n"
    steps, is_read = [6], threading.Event()

    def grow() -> None:
        while not is_read.is_set():
            steps.append(steps[-1] + 1)
            with log.open("a") as handle:
                handle.write(line.format(steps[-1]))
            time.sleep(0.01)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        settle(tmp_path / "sweep", home=home)
    finally:
        is_read.set()
        writer.join()
    ((read,),) = rows(home, "select max(step) from steps")
    assert 6 <= read < steps[-1]
    settle(tmp_path / "sweep", home=home)
    assert rows(home, "select count(*), max(step) from steps") == [(steps[-1], steps[-1])]
    assert_sound(home, runs=1)


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="no prlimit here")
@pytest.mark.parametrize("limit", [20_000, 400_000])  # Dagster's records; the lake or the store
def test_a_full_disk_costs_nothing_that_was_there(tmp_path: Path, filled: Path, limit: int) -> None:
    picotron_run(tmp_path / "more", dp=4)
    done = started_ingest(tmp_path / "more", home=filled, prefix=("prlimit", f"--fsize={limit}"))
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert "internal error" not in said
    assert "again" in said
    assert "Traceback" not in done.stderr
    assert_sound(filled, runs=1)
    settle(tmp_path / "more", home=filled)
    assert_sound(filled, runs=2)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_ingest_is_finished_by_the_next(tmp_path: Path, filled: Path, number: signal.Signals) -> None:
    for dp in (4, 8, 16):
        picotron_run(tmp_path / "more", dp=dp)
    command = [*_COMMAND, "ingest", str(tmp_path / "more"), "--no-published", "--home", str(filled)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        deadline = time.monotonic() + 60
        while not list((filled / "batches").glob("*.parquet")) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        os.killpg(process.pid, number)  # as a terminal does: to all that it started
        assert process.stderr is not None
        said = process.stderr.read()
    assert "Traceback" not in said
    assert rows(filled, "select count(*) from runs")
    settle(tmp_path / "more", home=filled)
    assert_sound(filled, runs=4)


def test_an_interrupt_that_falls_into_a_finaliser_is_not_lost() -> None:
    script = """
import signal, sys, time
from sweepscope.pipeline.__main__ import interrupt_again

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever starts the tests may have it ignored

class Finalised:
    def __del__(self):
        raise KeyboardInterrupt

sys.unraisablehook = interrupt_again
try:
    Finalised()
    time.sleep(300)
except KeyboardInterrupt:
    sys.exit("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=240)
    assert done.stderr == "interrupted\n"


def test_two_ingests_at_once_into_a_new_home_both_arrive(tmp_path: Path, home: Path) -> None:
    sweeps = [tmp_path / "one", tmp_path / "two"]
    picotron_run(sweeps[0])
    picotron_run(sweeps[1], dp=4)
    common = ["--no-published", "--home", str(home)]
    both = [subprocess.Popen([*_COMMAND, "ingest", str(sweep), *common]) for sweep in sweeps]
    assert [process.wait(timeout=240) for process in both] == [0, 0]
    assert_sound(home, runs=2)


def test_a_damaged_store_is_told_and_published_anew(tmp_path: Path, filled: Path) -> None:
    path = filled / "store" / os.readlink(filled / "store" / "results.duckdb")
    path.write_bytes(b"not a database")
    assert_refused(called("store", "verify", home=filled), str(path), "sweepscope ingest")
    picotron_run(tmp_path / "more", dp=4)
    settle(tmp_path / "more", home=filled)
    assert_sound(filled, runs=2)


def test_a_damaged_release_is_told_and_its_remedy_works(tmp_path: Path, filled: Path) -> None:
    picotron_run(tmp_path / "more", dp=4)
    settle(tmp_path / "more", home=filled)
    newest = max((filled / "lake" / "releases").glob("*.json"))
    newest.write_text("{")
    assert_refused(called("ingest", tmp_path / "more", home=filled), str(newest), "Move it away")
    assert rows(filled, "select count(*) from runs")
    newest.rename(tmp_path / "away.json")
    settle(tmp_path / "more", home=filled)
    assert_sound(filled, runs=2)


def test_a_lost_file_of_the_lake_is_named(filled: Path) -> None:
    lost = next((filled / "lake" / "steps").glob("*.parquet"))
    lost.unlink()
    assert_refused(called("store", "verify", home=filled), lost.name)
    assert rows(filled, "select count(*) from steps") == [(6,)]


def test_a_reader_that_leaves_early_is_no_error(one_run: Path) -> None:
    many = [*_COMMAND, "query", "select * from range(300000)", "--format", "csv", "--home", str(one_run)]
    with subprocess.Popen(many, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "range\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_parquet_is_not_thrown_at_a_terminal(one_run: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        command = [*_COMMAND, "query", "select 1", "--format", "parquet", "--home", str(one_run)]
        done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 2
    assert "--out" in done.stderr


def test_the_dashboard_refuses_a_port_in_use(one_run: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert_refused(called("dashboard", "--port", port, home=one_run), port, "--port", code=2)
