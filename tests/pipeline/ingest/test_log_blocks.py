"""Samples of logs: bounded, and the same however the log came in blocks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sweepscope.pipeline.ingest import log_blocks

LINES = [b"step %d loss %d.%02d and some words to fill the line\n" % (n, n % 9, n % 100) for n in range(150_000)]


def cut(lines: list[bytes], size: int) -> Iterator[tuple[bytes, int]]:
    for begin in range(0, len(lines), size):
        yield b"".join(lines[begin : begin + size]), begin + 1


@pytest.mark.parametrize("length", [0, 3, 20_000, 150_000])
def test_a_sample_does_not_depend_on_how_the_log_was_cut(length: int) -> None:
    lines = LINES[:length]
    whole = log_blocks.sample(cut(lines, 150_000))
    assert whole.equals(log_blocks.sample(cut(lines, 777)))
    assert whole["line_no"].is_sorted()
    if length:
        assert whole["line_no"].to_list()[:: whole.height - 1] == [1, length]


def test_a_sample_of_a_long_log_is_bounded_and_has_its_begin_its_end_and_lines_between() -> None:
    numbers = log_blocks.sample(cut(LINES, 5_000))["line_no"]
    assert numbers.len() < len(LINES) / 4
    assert numbers.filter((numbers > 50_000) & (numbers < 100_000)).len() > 100
