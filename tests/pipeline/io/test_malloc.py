"""Freed memory goes back to the system, where the C library knows how."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sweepscope.pipeline.io import malloc


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    malloc._trim.cache_clear()
    yield
    malloc._trim.cache_clear()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library has no malloc_trim")
def test_what_was_freed_goes_back() -> None:
    # Small enough for the heap, and under something that stays: the heap's end cannot move down.
    held = [np.ones(60_000, dtype=np.uint8) for _ in range(2_000)]
    last = held.pop()
    held.clear()
    before = resident_bytes()
    malloc.give_back()
    assert before - resident_bytes() > 50_000_000
    assert last.all()


def test_a_library_that_cannot_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())
    malloc.give_back()
