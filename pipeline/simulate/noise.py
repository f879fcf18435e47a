"""Disturbances of lines on their way to a file: prefixes, other ranks, colours, redrawn bars, bad bytes.

Each is a function over lines that does not change their values; `disturb` applies those of a run, `encode` makes the
bytes. A last line without a line feed stays last and without it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from sweepscope.pipeline.simulate.console import LogLine
from sweepscope.pipeline.simulate.truth import Noise, Tee

_CHATTER = (
    "/opt/env/site-packages/torch/utils/data/dataloader.py:557: UserWarning: This DataLoader will create 8 worker "
    "processes in total. Our suggested max number of worker in current system is 4.",
    "  warnings.warn(_create_warning_msg(",
    "NCCL version 2.27.3+cuda12.9",
    "Dataset c4 is being re-looped. Loss related metrics might be misleading.",
)
_GLUED = " > finished creating GPT datasets ..."
_PAINTS = ("\x1b[32m", "\x1b[1m", "\x1b[38;2;54;234;195m", "\x1b[38;5;214m")
# Latin-1 bytes in a UTF-8 file (as surrogates), UTF-8 read as Latin-1, NULs and a lone continuation byte.
_MOJIBAKE = (
    "dataset caf\udce9-fran\udce7ais: 12 shards",
    "tokenizer dâ\u20ac\u2122accord â\u20ac\u201c ok",
    "worker\x00\x00 3 ready",
    "\udc80\udcff\udcfe prefetch",
)


def disturb(
    lines: Sequence[LogLine], noise: Noise, rng: random.Random, *, num_ranks: int, gpus_per_node: int
) -> list[LogLine]:
    """`lines` with the disturbances that `noise` enables."""
    found = list(lines)
    if noise.duplicate_lines:
        found = duplicated(found, rng)
    if noise.interleaved_ranks:
        found = interleaved(found, rng, num_ranks)
    if noise.mojibake:
        found = sprinkled(found, _MOJIBAKE, rng, 0.05)
    if noise.colours:
        found = coloured(found, rng)
    found = [_prefixed(line, noise.tee, gpus_per_node) for line in found]
    if noise.progress_bars:
        found = with_bars(found, rng)
    return found


def encode(lines: Sequence[LogLine], *, crlf: bool = False) -> bytes:
    """UTF-8 bytes; surrogates become undecodable bytes."""
    end = "\r\n" if crlf else "\n"
    text = "".join(line.text + (end if line.ends else "") for line in lines)
    return text.encode("utf-8", errors="surrogateescape")


def duplicated(lines: Sequence[LogLine], rng: random.Random) -> list[LogLine]:
    """Some lines twice in a row, as two loggers with the same handler print them."""
    found: list[LogLine] = []
    for line in lines:
        found += [line] * (2 if line.ends and rng.random() < 0.25 else 1)
    return found


def interleaved(lines: Sequence[LogLine], rng: random.Random, num_ranks: int) -> list[LogLine]:
    """Chatter of other ranks between lines, and glued behind a closing bar where a rank's write came too early."""
    glued = [
        replace(line, text=line.text + _GLUED) if line.ends and line.text.endswith("|") and rng.random() < 0.2 else line
        for line in lines
    ]
    return sprinkled(glued, _CHATTER, rng, 0.15, num_ranks)


def sprinkled(
    lines: Sequence[LogLine], texts: Sequence[str], rng: random.Random, share: float, num_ranks: int = 1
) -> list[LogLine]:
    """Extra lines before a share of the lines."""
    found: list[LogLine] = []
    for line in lines:
        if rng.random() < share:
            found.append(LogLine(rng.choice(texts), rng.randrange(num_ranks)))
        found.append(line)
    return found


def coloured(lines: Sequence[LogLine], rng: random.Random) -> list[LogLine]:
    """Lines of workers in one colour up to the first blank and another after it; some clear the screen."""
    found = []
    for line in lines:
        if line.origin != "worker" or not line.ends or rng.random() < 0.3:
            found.append(line)
            continue
        paint, second = rng.choice(_PAINTS), rng.choice(_PAINTS)
        head, blank, tail = line.text.partition(" ")
        text = f"{paint}{head}{blank}{second}{tail}\x1b[0m"
        found.append(replace(line, text=("\x1b[H\x1b[2J" if rng.random() < 0.02 else "") + text))
    return found


def _prefixed(line: LogLine, tee: Tee, gpus_per_node: int) -> LogLine:
    if line.origin == "scheduler" or tee == "none":
        return line
    if tee == "srun":
        return replace(line, text=f"{line.rank // gpus_per_node}: {line.text}")
    if line.origin == "agent":
        return line
    # --tee numbers ranks within the node unless --role gives the name, as torchtitan's script does.
    label = f"default{line.rank % gpus_per_node}" if tee == "default" else f"rank{line.rank}"
    return replace(line, text=f"[{label}]:{line.text}")


def with_bars(lines: Sequence[LogLine], rng: random.Random) -> list[LogLine]:
    """tqdm bars, redrawn by carriage return: on lines of their own, before a line's text, or run into a traceback."""
    found: list[LogLine] = []
    for line in lines:
        chance = rng.random()
        if line.ends and "Traceback (most recent call last)" in line.text:
            found.append(replace(line, text=_bar(rng, 3) + line.text))
        elif chance < 0.03:
            found += [LogLine(_bar(rng, 4), line.rank), line]
        elif chance < 0.06 and line.origin == "worker":
            found.append(replace(line, text=_bar(rng, 2) + "\r" + line.text))
        else:
            found.append(line)
    return found


def _bar(rng: random.Random, frames: int) -> str:
    drawn = []
    for frame in range(frames):
        share = (frame + 1) / frames
        blocks = int(10 * share)
        drawn.append(
            f"\rTokenizing: {share:4.0%}|{'█' * blocks}{' ' * (10 - blocks)}| {int(4000 * share)}/4000 "
            f"[00:00<00:00, {rng.uniform(900, 9000):.2f} examples/s]"
        )
    return "".join(drawn)
