"""One process reads many files, each in a fork of its own; what becomes of one file does not touch the next."""

from __future__ import annotations

import json
import os
import pickle
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from sweepscope.pipeline.io.sandbox import Answer
from sweepscope.pipeline.memory.isolation import SANDBOX, SnapshotLimits, analyse_limited
from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError
from tests.pipeline.memory.allocator import Allocator, train

LIMITS = SnapshotLimits(memory_bytes=1 << 30, cpu_s=20, wall_s=120)


def snapshot(layers: int = 1) -> bytes:
    allocator = Allocator()
    train(allocator, layers=layers, steps=1)
    return pickle.dumps(allocator.snapshot())


def read(data: bytes) -> Answer:
    return SANDBOX.run([data[at : at + 100] for at in range(0, len(data), 100)], LIMITS, answer_bytes=1 << 20)


def events(answer: Answer) -> int:
    number: int = json.loads(answer.raw)["rows"]["memory_snapshots"][0]["events"]
    return number


@pytest.fixture(autouse=True)
def own_process() -> Iterator[None]:
    SANDBOX.close()
    yield
    SANDBOX.close()


def waiting() -> int:
    (server,) = SANDBOX._idle
    return server.process.pid


def test_one_process_reads_file_after_file() -> None:
    first, pid = read(snapshot()), waiting()
    second = read(snapshot(layers=2))
    assert waiting() == pid
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert events(second) > events(first) > 0


def test_a_file_that_is_refused_leaves_the_process_to_the_next() -> None:
    expected = events(read(snapshot()))
    pid = waiting()
    assert b"imports code" in read(b"\x80\x04cos\nsystem\n.").raw
    assert events(read(snapshot())) == expected
    assert waiting() == pid


@pytest.mark.slow
def test_a_file_beyond_its_memory_is_told_and_the_next_is_whole() -> None:
    expected = events(read(snapshot()))
    pid = waiting()
    with pytest.raises(RefusedError, match=r"GiB"):
        analyse_limited(
            [b"\x80\x04](", *[b"}" * 1_000 + b"e("] * 12_000, b"e."], SnapshotLimits(memory_bytes=600 << 20)
        )
    assert waiting() == pid
    assert events(read(snapshot())) == expected


@pytest.mark.slow
def test_a_fork_that_is_killed_is_told_and_the_next_is_whole() -> None:
    expected = events(read(snapshot()))
    pid = waiting()
    frames = b"\x95\0\0\0\0\0\0\0\0" * 500_000  # empty ones: much to do, nothing to keep
    with pytest.raises(RefusedError, match=r"CPU time"):
        analyse_limited([b"\x80\x04", *[frames] * 50], SnapshotLimits(cpu_s=1))
    assert waiting() == pid
    assert events(read(snapshot())) == expected


def test_the_clock_kills_and_another_process_takes_over() -> None:
    read(snapshot())
    pid = waiting()

    def slow() -> Iterator[bytes]:
        yield b"\x80\x04"
        time.sleep(1.5)

    answer = SANDBOX.run(slow(), replace(LIMITS, wall_s=0.3), answer_bytes=1 << 20)
    assert (answer.was_late, answer.exit_code) == (True, -signal.SIGKILL)
    assert SANDBOX._idle == []
    assert events(read(snapshot())) > 0
    assert waiting() != pid


def test_an_answer_beyond_its_limit_is_cut() -> None:
    answer = SANDBOX.run([snapshot(layers=3)], LIMITS, answer_bytes=100)
    assert len(answer.raw) == 101
    assert SANDBOX._idle == []


def test_a_file_that_cannot_be_read_on_ends_its_process() -> None:
    read(snapshot())
    pid = waiting()

    def broken() -> Iterator[bytes]:
        yield b"\x80\x04"
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        SANDBOX.run(broken(), LIMITS, answer_bytes=1 << 20)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert events(read(snapshot())) > 0


def test_a_process_that_was_killed_while_it_waited_is_replaced() -> None:
    read(snapshot())
    os.kill(waiting(), signal.SIGKILL)
    SANDBOX._idle[0].process.wait()
    assert events(read(snapshot())) > 0


@pytest.mark.slow
def test_threads_get_a_process_each() -> None:
    files = [snapshot(layers) for layers in (1, 2, 3, 1, 2, 3)]
    alone = [events(read(file)) for file in files[:3]]
    with ThreadPoolExecutor(3) as pool:
        assert [events(answer) for answer in pool.map(read, files)] == alone * 2
    assert 1 <= len(SANDBOX._idle) <= 3
