"""`python -m tests.trainers [--count 1000] [--seed 0] [--show SEED]`: how well made-up trainers are read."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.facts import HEAD, Score
from tests.trainers.judge import judge
from tests.trainers.trainer import draw_trainer


def main() -> None:
    """Write a table by kind of trainer and by fact."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--show", type=int)
    args = parser.parse_args()
    if args.show is not None:
        sys.stdout.write(draw_trainer(args.show).text + "\n")
        return
    found = {}
    for begin in range(args.seed, args.seed + args.count, 100):
        found |= judge(range(begin, min(begin + 100, args.seed + args.count)))
    lines = []
    if args.verbose:
        lines += [
            f"{seed} {trainer.name} {failure}" for seed, (trainer, score) in found.items() for failure in score.failures
        ]
    by_name: dict[str, Score] = {}
    facts: dict[str, Counter[str]] = {}
    for trainer, score in found.values():
        by_name[trainer.name] = by_name.get(trainer.name, Score()) + score
        for failure in score.failures:
            verdict, fact = failure.split()[:2]
            facts.setdefault(fact, Counter())[verdict] += 1
    lines += [f"{fact:24s}{dict(counts)}" for fact, counts in facts.items()]
    lines += [
        HEAD,
        *(score.row(name) for name, score in sorted(by_name.items())),
        sum(by_name.values(), Score()).row("all"),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
