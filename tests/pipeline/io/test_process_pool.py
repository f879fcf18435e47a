"""Work shared by processes: the same results in the same order, and an end that is clear whatever happens to them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sweepscope.pipeline.errors import WorkerError
from sweepscope.pipeline.io import process_pool, worker_process
from sweepscope.pipeline.io.process_pool import ProcessPool
from sweepscope.pipeline.io.sandbox import child_command
from tests.paths import ROOT

SOON_S = 120


def squared(task: tuple[int, bytes]) -> tuple[int, int]:
    number, data = task
    return number * number, len(data)


def process_id(_task: int) -> int:
    time.sleep(0.005)
    return os.getpid()


def fails(task: int) -> int:
    if os.environ.get("SWEEPSCOPE_TEST_PARENT") == str(os.getpid()):
        return task
    raise ValueError(f"not so: {task}")


def dies(task: int) -> int:
    if os.environ.get("SWEEPSCOPE_TEST_PARENT") == str(os.getpid()):
        return task
    os.kill(os.getpid(), signal.SIGKILL)
    return task


def leaves(*_fds: str) -> int:
    return 3


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON_S
    while not is_so():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPSCOPE_TEST_PARENT", str(os.getpid()))


def endless(pool: ProcessPool[int, int]) -> Iterator[int]:
    """Results without end."""
    end = time.monotonic() + SOON_S
    while time.monotonic() < end:
        yield from pool.submit(1)
        time.sleep(0.005)
    pytest.fail("it takes too long")


@pytest.mark.parametrize("number", [1, 2, 3])
def test_results_come_in_the_order_of_the_tasks(number: int) -> None:
    tasks = [(place, bytes(place * 1000)) for place in range(300)]
    with ProcessPool(squared, number) as pool:
        found = [result for task in tasks for result in pool.submit(task)]
        assert len(found) >= len(tasks) - 8 * number
        found += pool.drain()
        assert list(pool.drain()) == []
    assert found == [(place * place, place * 1000) for place in range(300)]


def test_others_take_part_and_are_gone_at_the_end() -> None:
    with ProcessPool(process_id, 3) as pool:
        pids: set[int] = set()
        for pid in endless(pool):
            pids.add(pid)
            if len(pids) == 3:
                break
    assert os.getpid() in pids
    assert not any(is_alive(pid) for pid in pids - {os.getpid()})


def test_what_the_work_raises_is_raised_here(known: None) -> None:
    with pytest.raises(ValueError, match="not so: 1") as caught, ProcessPool(fails, 2) as pool:
        list(endless(pool))
    assert "in fails" in caught.value.__notes__[0]


def test_a_worker_that_dies_is_an_error_and_no_wait(known: None) -> None:
    with pytest.raises(WorkerError, match=r"was killed \(SIGKILL\).*try --workers 1"), ProcessPool(dies, 3) as pool:
        list(endless(pool))


def test_a_worker_that_dies_while_it_waits() -> None:
    with ProcessPool(process_id, 2) as pool:
        until(lambda: list(pool.submit(1)) != [] and pool._workers[0].is_ready)
        list(pool.drain())
        pool._workers[0].process.kill()
        with pytest.raises(WorkerError, match="SIGKILL"):
            list(endless(pool))


def test_a_process_that_cannot_be_started_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(WorkerError, match="Cannot start a worker: No such file or directory"), ProcessPool(squared, 2):
        pass


def test_a_process_that_cannot_import_the_work_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(worker_process, "_SERVE", "tests.pipeline.io.test_process_pool:leaves")
    with pytest.raises(WorkerError, match="ended with exit code 3"), ProcessPool(process_id, 2) as pool:
        list(endless(pool))


SCRIPT = """
import signal
from sweepscope.pipeline.io.process_pool import ProcessPool
from tests.pipeline.io.test_process_pool import process_id
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
with ProcessPool(process_id, 2) as pool:
    while True:
        for pid in pool.submit(1):
            print(pid, flush=True)
"""
"""A command line in the foreground: the shell that started the tests may have made them ignore signals, as `nohup` and `&` do."""


def assert_none_stays_behind(how: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT, text=True
    ) as process:
        assert process.stdout is not None
        other = next(int(line) for line in process.stdout if int(line) != process.pid)
        gone = os.pidfd_open(other)
        process.send_signal(how)
        process.stdout.read()
        process.wait()
    select.select([gone], [], [])  # readable when the process has ended, which may take a busy machine any time
    os.close(gone)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux only")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_stays_behind(how: signal.Signals) -> None:
    assert_none_stays_behind(how)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux only")
def test_no_process_stays_behind_where_the_tests_ignore_signals() -> None:
    before = {how: signal.signal(how, signal.SIG_IGN) for how in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert_none_stays_behind(signal.SIGTERM)
    finally:
        for how, handler in before.items():
            signal.signal(how, handler)


def test_threads_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "cores", lambda: 8)
    monkeypatch.delenv("POLARS_MAX_THREADS", raising=False)
    assert worker_process._environment(3)["POLARS_MAX_THREADS"] == "2"
    assert worker_process._environment(9)["POLARS_MAX_THREADS"] == "1"
    monkeypatch.setenv("POLARS_MAX_THREADS", "1")
    assert worker_process._environment(2)["POLARS_MAX_THREADS"] == "1"


def test_a_worker_imports_what_this_process_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", "/usr/lib/python3"])
    command = child_command("a.b:c", "7", flags=["-P"])
    assert (command[1:3], command[-1]) == (["-P", "-c"], "7")
    assert repr([str(Path.cwd()), "/usr/lib/python3"]) in command[3]


def test_a_process_holds_no_more_than_it_may(known: None) -> None:
    with ProcessPool(process_id, 2, ahead=1) as pool:
        results = list(pool.map(range(3)))
        while not pool._workers[0].is_ready:
            pool._receive(timeout_s=None)
        for task in range(20):
            results += pool.submit(task)
            assert len(pool._workers[0].pending) <= 1
        results += pool.drain()
    assert len(results) == 23
    assert len(set(results)) == 2


def test_who_keeps_two_cores_busy_is_one_for_two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, alone, in_pairs in ((1, 1, 1), (2, 2, 1), (5, 4, 2), (64, 4, 4)):
        monkeypatch.setattr(process_pool, "cores", lambda cores=cores: cores)
        assert (process_pool.default_workers(), process_pool.default_workers(cores_each=2)) == (alone, in_pairs)
