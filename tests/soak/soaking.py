"""A day of sweeps that goes by faster: runs appear and grow under a real watcher, whose home is measured each hour."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from sweepscope.pipeline.commands.servers import stop_all
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.maintenance import verify
from sweepscope.pipeline.store.published import connect, current
from tests.chaos.sweep import GrowingSweep
from tests.soak.measuring import Sample, age, take

CATCH_UP_S = 300.0
"""How long the watcher may add nothing while something is missing, at the end: a busy machine is slow, not wrong."""


@dataclass
class Outcome:
    """What was measured, and what is wrong: rows lost or doubled, problems of the store, a watcher that ended."""

    samples: list[Sample] = field(default_factory=list)
    runs_written: int = 0
    lost: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    catch_up_s: float = 0.0


@dataclass
class Soak:
    """A sweep in `folder` that grows, and a home beside it."""

    folder: Path
    seed: int = 0

    def __post_init__(self) -> None:
        (self.folder / "sweep").mkdir(parents=True)
        self.sweep = GrowingSweep(self.folder / "sweep", random.Random(self.seed))  # noqa: S311 -- repeatable
        self.home = Home.resolve(str(self.folder / "home"))
        self.outcome = Outcome()

    def run(self, *, hours: int, minutes: float, writes_per_hour: int, on_hour: Callable[[Sample], None]) -> Outcome:
        """What came of so many simulated hours in so many minutes.

        Each hour, Dagster's records are made an hour older than they became by themselves, and what the schedule
        `upkeep` would do is done.
        """
        hour_s = 60 * minutes / hours
        for _ in range(5):
            self.sweep.grow()
        self._command("ingest", str(self.sweep.folder), "--no-published")
        port = str(20_000 + random.randrange(20_000))  # noqa: S311 -- a port to be free, not a secret to be guessed
        watched = ["watch", str(self.sweep.folder), "--no-published", "--dagster-port", port]
        with (self.folder / "watch.log").open("ab") as log:
            watcher = subprocess.Popen([*_SWEEPSCOPE, *watched, "--home", str(self.home.path)], stdout=log, stderr=log)
            try:
                for hour in range(1, hours + 1):
                    self._hour(hour_s, writes_per_hour)
                    age(self.home, timedelta(seconds=max(3600 - hour_s, 0)))
                    self._command("store", "prune")
                    self.outcome.samples.append(take(self.home, hour, watcher.pid))
                    on_hour(self.outcome.samples[-1])
                    if watcher.poll() is not None:
                        self.outcome.problems.append(f"the watcher ended with {watcher.returncode} in hour {hour}")
                        break
                self._catch_up()
            finally:
                watcher.terminate()
                with suppress(subprocess.TimeoutExpired):
                    watcher.wait(timeout=30)
                stop_all([watcher])
        return self.judge()

    def judge(self) -> Outcome:
        """What is lost, doubled or damaged now."""
        self.outcome.runs_written = len(self.sweep.states)
        stored = self._stored()
        for name, states in self.sweep.states.items():
            rows = stored.get(name)
            if rows != (1, states[-1], states[-1]):
                self.outcome.lost.append(
                    f"{name}: (runs, steps, last step) are {rows}, written were {states[-1]} steps"
                )
        self.outcome.problems += verify(self.home).problems
        return self.outcome

    def _hour(self, seconds: float, writes: int) -> None:
        begin = time.monotonic()
        for number in range(1, writes + 1):
            self.sweep.grow()
            time.sleep(max(begin + seconds * number / writes - time.monotonic(), 0))

    def _catch_up(self) -> None:
        begin = changed = time.monotonic()
        wanted = {name: (1, states[-1], states[-1]) for name, states in self.sweep.states.items()}
        before = self._stored()
        while before != wanted and time.monotonic() - changed < CATCH_UP_S:
            time.sleep(1)
            if (now := self._stored()) != before:
                before, changed = now, time.monotonic()
        self.outcome.catch_up_s = time.monotonic() - begin

    def _stored(self) -> dict[str, tuple[int, int, int]]:
        """By run directory: attempts, steps and the last step."""
        query = """SELECT string_split(r.source_path, '/')[-2], count(DISTINCT r.run_id), count(s.step), max(s.step)
            FROM runs AS r LEFT JOIN steps AS s USING (run_id) WHERE r.origin = 'measured' GROUP BY 1"""
        connection = connect(current(self.home.path))
        try:
            return {name: tuple(rest) for name, *rest in connection.execute(query).fetchall()}
        finally:
            connection.close()

    def _command(self, *words: str) -> dict[str, object]:
        command = [*_SWEEPSCOPE, *words, "--home", str(self.home.path), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            self.outcome.problems.append(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-300:]}")
            return {}
        return dict(json.loads(done.stdout))


_SWEEPSCOPE = [sys.executable, "-m", "sweepscope"]
