"""What a child of the sandbox has, and what becomes of it and its server when a limit ends it."""

from __future__ import annotations

import itertools
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from sweepscope.pipeline.io.sandbox import ProcessLimits, Sandbox, Stop

LIMITS = ProcessLimits(memory_bytes=1 << 30, cpu_s=20, wall_s=120)
KINDS = ("AS", "CPU", "FSIZE", "CORE", "NOFILE")


def describe(source: IO[bytes], out: IO[bytes]) -> None:
    """What a child finds around itself."""
    about = {
        "given": source.read().decode(),
        "environment": dict(os.environ),
        "directory": os.getcwd(),
        "group": os.getpgid(0),
        "session": os.getsid(0),
        "limits": {kind: resource.getrlimit(getattr(resource, f"RLIMIT_{kind}")) for kind in KINDS},
        "flags": [sys.flags.isolated, sys.flags.no_site],
        "descriptors": {
            fd: os.readlink(f"/proc/self/fd/{fd}") for fd in map(int, os.listdir("/proc/self/fd")) if is_open(fd)
        },
    }
    out.write(json.dumps(about).encode())


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def raise_limits(_source: IO[bytes], out: IO[bytes]) -> None:
    kinds = [getattr(resource, f"RLIMIT_{kind}") for kind in KINDS]
    for kind in kinds:
        _, hard = resource.getrlimit(kind)
        try:
            resource.setrlimit(kind, (hard + 1, hard + 1))
        except (ValueError, OSError):
            out.write(b"refused ")


def write_file(source: IO[bytes], _out: IO[bytes]) -> None:
    Path(source.read().decode()).write_bytes(b"x" * 100)


def start_another(_source: IO[bytes], out: IO[bytes]) -> None:
    """A process of its own that would outlive the answer."""
    if not (child := os.fork()):
        time.sleep(600)
    out.write(b"%d" % child)
    out.flush()
    time.sleep(600)


def leave(_source: IO[bytes], out: IO[bytes]) -> None:
    out.write(b"begun")
    raise SystemExit(0)


def echo(source: IO[bytes], out: IO[bytes]) -> None:
    out.write(source.read())


def sandbox_of(work: Any, idle_s: float = 0.0) -> Sandbox:
    return Sandbox(f"{__name__}:{work.__name__}", environment={"MINE": "1"}, idle_s=idle_s)


@pytest.fixture
def echoes() -> Iterator[Sandbox]:
    found = sandbox_of(echo, idle_s=30)
    yield found
    found.close()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_child_has_nothing_of_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        answer = sandbox_of(describe).run([b"text"], LIMITS, answer_bytes=1 << 20)
    about = json.loads(answer.raw)
    assert (answer.exit_code, about["given"], about["directory"], about["flags"]) == (0, "text", "/", [1, 1])
    own = {"LC_CTYPE", "_RJEM_MALLOC_CONF"}  # set by Python, and by our package when the child imports it
    assert about["environment"].keys() - own == {"LD_LIBRARY_PATH", "MINE"}
    assert about["group"] == about["session"] != os.getpgid(0)
    assert about["limits"] == {
        "AS": [1 << 30, 1 << 30],
        "CPU": [20, 21],
        "FSIZE": [0, 0],
        "CORE": [0, 0],
        "NOFILE": [64, 64],
    }
    others = [path for path in about["descriptors"].values() if not path.startswith("pipe:")]
    assert set(others) <= {"/dev/null"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may raise any limit")
def test_a_child_cannot_raise_its_limits() -> None:
    assert sandbox_of(raise_limits).run([], LIMITS, answer_bytes=100).raw.split() == [b"refused"] * len(KINDS)


def test_a_child_cannot_write_a_file(tmp_path: Path) -> None:
    path = tmp_path / "written"
    answer = sandbox_of(write_file).run([str(path).encode()], LIMITS, answer_bytes=100)
    assert answer.exit_code in (1, -signal.SIGXFSZ)
    assert not path.exists() or path.stat().st_size == 0


def test_the_clock_ends_what_a_child_started() -> None:
    limits = ProcessLimits(memory_bytes=1 << 30, cpu_s=20, wall_s=4.0)
    answer = sandbox_of(start_another).run([], limits, answer_bytes=100)
    assert (answer.was_late, answer.exit_code) == (True, -signal.SIGKILL)
    while not is_dead(int(answer.raw)):  # a signal takes its time
        time.sleep(0.01)


def is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_child_that_leaves_early_is_no_success() -> None:
    answer = sandbox_of(leave).run([], LIMITS, answer_bytes=100)
    assert answer.exit_code == 1


def test_an_answer_is_cut_one_byte_behind_its_limit(echoes: Sandbox) -> None:
    assert len(echoes.run([bytes(1_000)] * 100, LIMITS, answer_bytes=100).raw) == 101
    assert echoes._idle == []
    assert echoes.run([b"next"], LIMITS, answer_bytes=100).raw == b"next"


def test_a_server_waits_only_where_it_should(echoes: Sandbox) -> None:
    assert echoes.run([b"a", b"b"], LIMITS, answer_bytes=100).raw == b"ab"
    (server,) = echoes._idle
    assert echoes.run([b"c"], LIMITS, answer_bytes=100).raw == b"c"
    assert echoes._idle == [server]
    echoes.close()
    assert not server.is_alive()
    alone = sandbox_of(echo)
    assert alone.run([b"d"], LIMITS, answer_bytes=100).raw == b"d"
    assert alone._idle == []


def wait_long(_source: IO[bytes], out: IO[bytes]) -> None:
    out.write(b"begun")
    out.flush()
    time.sleep(600)


def test_another_thread_ends_a_request_before_it_began_and_while_it_runs() -> None:
    begun = Stop()
    begun.ask()
    sandbox = sandbox_of(wait_long, idle_s=60)
    assert sandbox.run([], LIMITS, answer_bytes=100, stop=begun) == (b"", -signal.SIGKILL, False)
    running, answers = Stop(), []
    thread = threading.Thread(
        target=lambda: answers.append(sandbox.run([], LIMITS, answer_bytes=100, stop=running)), daemon=True
    )
    thread.start()
    while thread.is_alive():
        running.ask()
        thread.join(0.01)
    assert answers[0].exit_code == -signal.SIGKILL
    running.ask()  # over: nothing is left to end


def test_stands_back_behind_other_processes() -> None:
    polite = ProcessLimits(memory_bytes=1 << 30, cpu_s=20, wall_s=120, niceness=7)
    found = [int(sandbox_of(niceness).run([], limits, answer_bytes=10).raw) for limits in (LIMITS, polite)]
    assert found[1] == min(19, found[0] + 7)


def niceness(_source: IO[bytes], out: IO[bytes]) -> None:
    out.write(b"%d" % os.nice(0))


def soft_limits(source: IO[bytes], out: IO[bytes]) -> None:
    """Soft limits of memory and processor time, before and behind each piece that is read."""
    while True:
        kinds = (resource.RLIMIT_AS, resource.RLIMIT_CPU)
        out.write(json.dumps([resource.getrlimit(kind)[0] for kind in kinds]).encode() + b"\n")
        if not source.read(1 << 20):
            return


def test_limits_grow_with_what_has_been_read_up_to_the_given_ones() -> None:
    by_size = ProcessLimits(memory_bytes=4 << 30, cpu_s=12, wall_s=120, is_by_size=True)
    raw = sandbox_of(soft_limits).run([bytes(1 << 20)] * 4, by_size, answer_bytes=1 << 20).raw
    memory, seconds = zip(*map(json.loads, raw.splitlines()), strict=True)
    assert seconds == (10, 11, 12, 12, 12)
    assert [later - first for first, later in itertools.pairwise(memory)] == [40 << 20] * 4
    assert 256 << 20 < memory[0] < 1 << 30
