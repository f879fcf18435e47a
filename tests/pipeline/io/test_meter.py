"""A file that takes more time or memory than its size allows is stopped, with its name and the remedy."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

import pytest

from sweepscope.pipeline.errors import LimitError
from sweepscope.pipeline.io import meter
from sweepscope.pipeline.io.meter import metered
from sweepscope.schemas import limits


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fiftieth of a second and of a gigabyte, and looks that are as frequent."""
    monkeypatch.setattr(meter, "_EVERY_S", 0.005)
    monkeypatch.setattr(limits, "FREE_SECONDS", 0.1)
    monkeypatch.setattr(limits, "FREE_MEMORY_BYTES", 20 << 20)


def work(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def message(action: Callable[[], object], size: int = 1 << 20) -> str:
    with pytest.raises(LimitError) as caught, metered("/logs/a.json", lambda: size):
        action()
    return str(caught.value)


def test_time_is_limited_and_the_message_has_file_limit_and_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS_PER_MIB", 0.1)
    assert message(lambda: work(30)) == (
        "Cannot read /logs/a.json: reading it takes more than 0.2 s of processor time, the limit for 1.0 MiB. "
        "Leave it out, or split it."
    )


def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FREE_SECONDS", 60)
    taken: list[bytearray] = []

    def take() -> None:
        while len(taken) < 2_000:
            taken.append(bytearray(b"x" * (1 << 20)))
            work(0.001)

    assert "takes more than 60 MiB of memory, the limit for 1.0 MiB" in message(take)
    assert len(taken) < 200


def test_what_has_been_read_raises_the_limit() -> None:
    with metered("/logs/a.json", lambda: 10 << 20):
        work(0.5)


def test_a_limit_that_a_reader_states_gets_the_files_name_once() -> None:
    def refuse() -> None:
        with metered("/logs/inner.json", lambda: 0):
            raise LimitError("it has 5 columns, over 4. Leave out some.")

    assert message(refuse) == "Cannot read /logs/inner.json: it has 5 columns, over 4. Leave out some."


def test_the_timer_ends_with_the_block_and_works_again() -> None:
    for _ in range(3):
        assert "processor time" in message(lambda: work(30))
        assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    work(0.3)


def test_a_block_within_another_is_its_part() -> None:
    def outer() -> None:
        with metered("/logs/b.json", lambda: 1 << 40):
            work(30)

    assert "/logs/b.json" in message(outer)  # by the time of the outer one


def test_other_threads_are_not_metered() -> None:
    done = []

    def run() -> None:
        with metered("/logs/a.json", lambda: 0):
            work(0.3)
        done.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done
