"""A trainer without torch that takes picotron's `config.json` and prints picotron's lines.

It fits a bigram table by gradient descent, which is work enough to have a loss that falls; throughput is that of the
machine whose layout it is given, at a fixed speed per rank. A micro-batch of more tokens than STAND_IN_TOKENS is more
than it has memory for. Started by `torchrun` beside it, once for all ranks.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
from itertools import pairwise
from pathlib import Path

TOKENS_PER_S_PER_RANK = 5_000.0
SYMBOLS = 8


def readable(number: float) -> str:
    """As picotron's utils.to_readable_format."""
    for limit, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if number >= limit:
            return f"{number / limit:.2f}{suffix}"
    return f"{number:.2f}"


def bigrams(seed: int) -> list[tuple[int, int]]:
    """Pairs of symbols of which the second mostly follows from the first."""
    draw = random.Random(seed)  # noqa: S311 - data to train on, no secret
    text = [0]
    for _ in range(400):
        text.append((text[-1] * 3 + 1) % SYMBOLS if draw.random() < 0.8 else draw.randrange(SYMBOLS))
    return list(pairwise(text))


def losses(steps: int, seed: int) -> list[float]:
    """Mean cross-entropy of each step of gradient descent."""
    weights = [[0.0] * SYMBOLS for _ in range(SYMBOLS)]
    pairs, found = bigrams(seed), []
    for _ in range(steps):
        loss, slopes = 0.0, [[0.0] * SYMBOLS for _ in range(SYMBOLS)]
        for first, second in pairs:
            total = sum(map(math.exp, weights[first]))
            loss -= math.log(math.exp(weights[first][second]) / total) / len(pairs)
            for at in range(SYMBOLS):
                slopes[first][at] += (math.exp(weights[first][at]) / total - (at == second)) / len(pairs)
        weights = [[w - 4.0 * s for w, s in zip(*rows, strict=True)] for rows in zip(weights, slopes, strict=True)]
        found.append(loss)
    return found


def main() -> int:
    """Train as the configuration says; the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    config = json.loads(Path(parser.parse_args().config).read_text())
    mesh, training = config["distributed"], config["training"]
    ranks = mesh["tp_size"] * mesh["cp_size"] * mesh["pp_size"] * mesh["dp_size"]
    if ranks != int(os.environ["WORLD_SIZE"]):
        sys.stderr.write(f"AssertionError: world_size {os.environ['WORLD_SIZE']} is not the mesh of {ranks}\n")
        return 1
    micro = training["micro_batch_size"] * training["seq_length"]
    batch = micro * training["gradient_accumulation_steps"] * mesh["dp_size"]
    sys.stdout.write("rank 0: Initializing model meta device\n")
    if micro > int(os.environ.get("STAND_IN_TOKENS", "1000000000")):
        sys.stderr.write(
            "[rank0]: Traceback (most recent call last):\n"
            "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
            "capacity of 79.10 GiB of which 1.02 GiB is free.\n"
        )
        return 1
    speed = TOKENS_PER_S_PER_RANK * ranks
    for step, loss in enumerate(losses(training["total_train_steps"], training["seed"]), start=1):
        sys.stdout.write(
            f"[rank 0] Step: {step:<5d} | Loss: {loss:6.4f} | Global batch size: {readable(batch):>7s} | "
            f"Tokens/s: {readable(speed):>7s} | Tokens/s/GPU: {readable(speed / ranks):>7s} | "
            f"Tokens: {readable(batch * step):>7s} | MFU: 24.10% | Memory usage:  61.00GB\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
