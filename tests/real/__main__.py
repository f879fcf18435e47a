"""`python -m tests.real`: run real trainers, ingest them live and afterwards, and print what was read of them."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.facts import HEAD, Score
from tests.real import environment
from tests.real.judge import judge, read
from tests.real.launch import train, truth_of
from tests.real.live import LiveIngests, differences, ingest
from tests.real.trainings import TRAININGS, Training

_SHOWN = 20


def main() -> int:
    """0 when each training is exactly one run, nothing read is wrong, and live ingests end where one ingest does."""
    parser = argparse.ArgumentParser(prog="python -m tests.real", description=__doc__)
    parser.add_argument("--only", default="", help="trainings whose name holds this")
    parser.add_argument(
        "--nanogpt", help="a checkout of nanoGPT, or what `git clone` takes; without it, it is left out"
    )
    parser.add_argument(
        "--folder", type=Path, help="where to train and to keep everything; one with trainings is read only"
    )
    parser.add_argument("--at-once", type=int, default=2, help="trainings at a time (default: %(default)s)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (args.folder or Path(scratch)).resolve()
        trainings = [each for each in TRAININGS if args.only in each.name]
        if not args.nanogpt and any(each.script == "train_nanogpt.py" for each in trainings):
            sys.stdout.write("nanoGPT is no package and is left out: name a checkout with --nanogpt\n")
            trainings = [each for each in trainings if each.script != "train_nanogpt.py"]
        live = LiveIngests(
            folder / "sweep",
            folder / "live",
            {folder / "sweep" / each.name: truth_of(folder, each) for each in trainings},
        )
        if not (folder / "truth").exists():
            nanogpt = _checkout(args.nanogpt, folder) if args.nanogpt else None
            train(trainings, folder, python=environment.python(), nanogpt=nanogpt, at_once=args.at_once, beside=live)
        return _report(folder, trainings, live)


def _report(folder: Path, trainings: list[Training], live: LiveIngests) -> int:
    ingest(live.sweep, folder / "once")
    scores = {"once": _scores(folder, folder / "once", trainings)}
    if live.home.exists():
        ingest(live.sweep, live.home)
        scores["live"] = _scores(folder, live.home, trainings)
        live.faults += differences(live.home, folder / "once")
    lines = [f"{'':28s}{HEAD.removeprefix(' ' * 24)}"]
    for way, of_trainings in scores.items():
        lines += [f"{name:28s}{score.row('').removeprefix(' ' * 24)}  {way}" for name, score in of_trainings.items()]
        lines.append(f"{'all':28s}{sum(of_trainings.values(), Score()).row('').removeprefix(' ' * 24)}  {way}")
    for way, of_trainings in scores.items():
        lines += [f"{way} {name}: {what}" for name, score in of_trainings.items() for what in score.failures]
    lines.append(f"{live.count} live ingests, {len(live.faults)} faults")
    lines += live.faults[:_SHOWN]
    sys.stdout.write("\n".join(lines) + "\n")
    wrong = sum(score.counts["wrong"] for each in scores.values() for score in each.values())
    return 1 if wrong or live.faults else 0


def _scores(folder: Path, home: Path, trainings: list[Training]) -> dict[str, Score]:
    return {
        each.name: judge(truth_of(folder, each), *read(home, folder / "sweep" / each.name))
        for each in trainings
        if truth_of(folder, each).exists()
    }


def _checkout(source: str, folder: Path) -> Path:
    """A checkout of nanoGPT as it is, or a new one."""
    if (Path(source) / "train.py").exists():
        return Path(source)
    place = folder / "nanoGPT"
    subprocess.run(["git", "clone", "--quiet", source, place], check=True)
    return place


if __name__ == "__main__":
    sys.exit(main())
