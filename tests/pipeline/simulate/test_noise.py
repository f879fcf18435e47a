"""Noise must leave what the lines say alone."""

from __future__ import annotations

import random
import re

import pytest

from sweepscope.pipeline.simulate.console import LogLine, agent, scheduler, worker
from sweepscope.pipeline.simulate.noise import coloured, disturb, duplicated, encode, interleaved, with_bars
from sweepscope.pipeline.simulate.truth import Noise, Tee

LINES = [LogLine(f"step: {n} | loss: {n / 7:.3f} |", rank=n % 16) for n in range(300)]
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def _rng() -> random.Random:
    return random.Random(3)  # noqa: S311 - a test, not cryptography


def _disturb(lines: list[LogLine], **switches: object) -> list[LogLine]:
    return disturb(lines, Noise(**switches), _rng(), num_ranks=16, gpus_per_node=8)  # type: ignore[arg-type]


def test_silence_changes_nothing() -> None:
    assert _disturb(LINES) == LINES


def test_duplicates_stand_next_to_each_other() -> None:
    found = duplicated(LINES, _rng())
    assert len(found) > len(LINES)
    assert [line for n, line in enumerate(found) if n == 0 or line != found[n - 1]] == LINES


def test_interleaving_keeps_the_lines_in_order_and_only_adds_behind_a_bar() -> None:
    texts = {line.text for line in LINES}
    found = [line.text.split(" > finished")[0] for line in interleaved(LINES, _rng(), 16)]
    assert [text for text in found if text in texts] == [line.text for line in LINES]
    assert len(found) > len(LINES)


def test_colours_come_off() -> None:
    found = coloured(LINES, _rng())
    assert found != LINES
    assert [_ANSI.sub("", line.text) for line in found] == [line.text for line in LINES]


def test_bars_leave_each_line_behind_its_last_carriage_return() -> None:
    texts = {line.text for line in LINES}
    last = [line.text.rsplit("\r", 1)[-1] for line in with_bars(LINES, _rng())]
    assert [text for text in last if text in texts] == [line.text for line in LINES]


def test_a_traceback_can_start_right_behind_a_bar() -> None:
    (line,) = with_bars(worker(["Traceback (most recent call last):"]), _rng())
    assert "examples/s]Traceback" in line.text


@pytest.mark.parametrize(
    ("tee", "expected"),
    [
        ("none", ["a", "b", "c"]),
        ("default", ["[default3]:a", "b", "c"]),
        ("rank", ["[rank11]:a", "b", "c"]),
        ("srun", ["1: a", "0: b", "c"]),
    ],
)
def test_prefixes_name_the_printer_and_spare_the_scheduler(tee: Tee, expected: list[str]) -> None:
    lines = [*worker(["a"], rank=11), *agent(["b"]), *scheduler(["c"])]
    assert [line.text for line in _disturb(lines, tee=tee)] == expected


def test_an_unended_last_line_stays_last_and_unended() -> None:
    lines = [*LINES[:20], LogLine("step: 20 | lo", ends=False)]
    found = _disturb(
        lines, tee="rank", interleaved_ranks=True, colours=True, progress_bars=True, duplicate_lines=True, mojibake=True
    )
    assert found[-1].text.endswith("step: 20 | lo")
    assert [line for line in found if not line.ends] == [found[-1]]
    assert not encode(found).endswith(b"\n")


def test_crlf_ends_every_line() -> None:
    assert encode(worker(["a", "b"]), crlf=True) == b"a\r\nb\r\n"


def test_mojibake_is_not_utf8() -> None:
    data = encode(_disturb(LINES, mojibake=True))
    with pytest.raises(UnicodeDecodeError):
        data.decode("utf-8")
    assert b"\x00" in data
