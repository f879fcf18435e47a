"""Lines that a terminal's window has broken, and lines of one length that nothing has."""

from __future__ import annotations

import random

import pytest

from sweepscope.pipeline.io.terminal_lines import unbroken, window_width
from sweepscope.pipeline.io.text_encoding import may_be_transcoded, text_chunks


def lines(count: int = 60) -> list[str]:
    rng = random.Random(4)  # noqa: S311 -- made-up losses, no secret
    return [
        f"[2026-08-01 12:00:{at % 60:02d}][trainer] iter {at:5d}/100 | loss {rng.uniform(2, 9):8.4f} | "
        f"lr 3.00e-04 | grad {rng.uniform(0, 1):.3f} | dt {rng.uniform(900, 1100):.2f}ms"
        for at in range(count)
    ]


def broken(text: list[str], width: int) -> str:
    return "".join(f"{line[at : at + width]}\n" for line in text for at in range(0, len(line), width))


@pytest.mark.parametrize("width", [70, 80, 97])
@pytest.mark.parametrize("chunk", [7, 1000, 100_000])
def test_broken_lines_are_joined_and_keep_their_numbers(width: int, chunk: int) -> None:
    data = broken(lines(), width).encode()
    assert window_width(data[:8192]) == width
    assert may_be_transcoded(data[:8192])
    whole = b"".join(text_chunks("pane.txt", (data[at : at + chunk] for at in range(0, len(data), chunk)))).decode()
    assert [line for line in whole.split("\n") if line] == lines()
    numbered = {line: number for number, line in enumerate(whole.split("\n"))}
    printed = broken(lines(), width).split("\n")
    assert all(line.startswith(printed[number]) for line, number in numbered.items() if line)


SAVED = "Best model so far"


@pytest.mark.parametrize(
    "text",
    [
        lines(),
        [line.ljust(120) for line in lines()],
        [f"{line}\r" for line in lines()],
        [one for line in lines() for one in (line[:104], SAVED)],
        [one for line in lines() for one in (f" 50%|#  | 1/2\r100%|###| 2/2\r{line[:104]}", "and so on")],
    ],
    ids=["of any length", "padded", "of Windows", "above another", "redrawn"],
)
def test_whole_lines_stay_as_they_are(text: list[str]) -> None:
    data = "".join(f"{line}\n" for line in text).encode()
    assert window_width(data[:8192]) is None


def test_what_fills_the_window_at_the_end_is_not_lost() -> None:
    assert b"".join(unbroken([b"abcdefgh\nij\nABCDEFGH"], 8)) == b"abcdefghij\n\nABCDEFGH"
    assert b"".join(unbroken([b"abcdefgh\n"], 8)) == b"abcdefgh\n"


def test_rows_of_a_box_are_whole_however_often_it_is_printed() -> None:
    """All rows of nvidia-smi's box are of one length, and no line of a log that repeats it is longer."""
    box = [
        "Tue Oct 29 19:00:23 2024       ",
        "+---------------------------------------------------------------------------------------+",
        "| NVIDIA-SMI 545.23.08              Driver Version: 545.23.08    CUDA Version: 12.3     |",
        "|-----------------------------------------+----------------------+----------------------+",
        "|   0  NVIDIA L40S                    On  | 00000000:4A:00.0 Off |                    0 |",
        "| N/A   27C    P8             32W /  350W |      0MiB / 46068MiB |      0%      Default |",
        "+-----------------------------------------+----------------------+----------------------+",
    ]
    assert len({len(line) for line in box[1:]}) == 1
    data = ("\n".join(box) + "\n").encode() * 9
    assert window_width(data) is None
    assert b"".join(text_chunks("gpu_usage.log", [data])) == data
    # A window of that width may have broken other lines.
    assert b"".join(unbroken([data + b"x" * 89 + b"\ny\n"], 89)) == data + b"x" * 89 + b"y\n\n"
