"""Ingests, compactions and watchers that are killed at named points or at random, and what is left of them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from types import MappingProxyType

import duckdb

from sweepscope.pipeline.commands.servers import stop_all
from sweepscope.pipeline.io.fault_points import VARIABLE
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lock import holder
from sweepscope.pipeline.store.maintenance import verify
from sweepscope.pipeline.store.published import connect, current
from sweepscope.schemas.registry import TABLES
from tests.chaos.readers import Readers
from tests.chaos.setups import ON_THIS_MACHINE, Setup
from tests.chaos.sweep import GrowingSweep
from tests.processes import command_line, descendants

_NOT_CONTENT = {"batch_id"}
_ONLY_COMPACTING = ("lake.pruned",)
WATCH_LIMIT_S = 600.0  # a watcher starts several processes: minutes on a busy machine
READERS = 3


@dataclass
class Outcome:
    """Kills by what was killed where, reads beside them, and everything that was wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    reads: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    half: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    seconds_to_ingest: list[float] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was wrong."""
        return not (self.lost or self.doubled or self.half or self.stuck)


class Chaos:
    """A growing sweep, homes, and processes over them that get killed. `home` is the one that is read from."""

    def __init__(self, folder: Path, seed: int, setup: Setup = ON_THIS_MACHINE) -> None:
        self.random = random.Random(seed)  # noqa: S311 -- repeatable, not secret
        self.folder = folder
        (folder / "sweep").mkdir(parents=True)
        self.sweep = GrowingSweep(folder / "sweep", self.random)
        self.setup = setup
        self.home, *self.others = (Home.resolve(str(folder / f"home{number}")) for number in range(setup.homes))
        self.outcome = Outcome()

    def run(
        self,
        *,
        ingests: int,
        watches: int,
        seconds: float = float("inf"),
        points_per_moment: int = 1,
        readers_rest: float = 0.0,
        on_kill: Callable[[int], None] = lambda _kills: None,
    ) -> Outcome:
        """What came of so many killed ingests (every fifth a compaction) and so many killed watchers.

        After `seconds` no further ingest is started. After so many named points a moment is chosen at random.
        `readers_rest` is that of `Readers`. `on_kill` gets the number of kills so far.
        """
        end = time.monotonic() + seconds
        for _ in range(5):
            self.sweep.grow()
        self._command("ingest")
        with Readers(self.home, self.sweep.legal, number=READERS, rest=readers_rest) as readers:
            points = self._points(points_per_moment)
            while sum(self.outcome.kills.values()) < ingests and time.monotonic() < end:
                self._kill_one(next(points))
                on_kill(sum(self.outcome.kills.values()))
            self._watch(watches)
        outcome = self.outcome
        outcome.reads = readers.reads
        outcome.lost += readers.lost
        outcome.doubled += readers.doubled
        outcome.half += readers.half
        for home in (self.home, *self.others):
            self._command("ingest", home)
        self._compare_with_one_go()
        return outcome

    def _points(self, per_moment: int) -> Iterator[str | None]:
        """Every point in turn, and a moment at random (None) after so many."""
        for number, name in enumerate(cycle(self.setup.points), 1):
            yield name
            if number % per_moment == 0:
                yield None

    def _kill_one(self, point: str | None) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.sweep.grow()
        if point == "store.copied":  # only of a store whose release the lake still keeps
            self._command("ingest")
            self.sweep.grow()
        # A compaction does not come by every point, so it is killed at moments.
        is_compaction = point in _ONLY_COMPACTING or (point is None and self.random.random() < 0.4)
        verb = "compact" if is_compaction else "ingest"
        number = self.random.randint(1, 3) if point == "lake.table_written" else 1
        settings = {VARIABLE: f"{point}:{number}"} if point else {}
        home, *others = self.random.sample([self.home, *self.others], self.setup.homes)
        beside = [self._start("ingest", other) for other in others]
        process = self._start(verb, home, settings)
        if point is None and self.setup.has_workers and not is_compaction:
            self._kill_worker(process)
        elif point is None:
            time.sleep(self.random.uniform(0.2, 4.0))
            process.kill()
        if process.wait() == -signal.SIGKILL:
            self.outcome.kills[f"{verb} at {point or 'a random moment'}"] += 1
        for other in beside:
            self._wait_whole("ingest", other)

    def _kill_worker(self, ingest: subprocess.Popen[bytes]) -> None:
        """Kill a process that reads for an ingest, at a moment: the ingest has to go on without it."""
        end = time.monotonic() + self.random.uniform(2.0, 12.0)
        while ingest.poll() is None:
            workers = [pid for pid in descendants(ingest.pid) if _is_worker(pid)]
            if workers and time.monotonic() > end:
                with suppress(OSError):
                    os.kill(self.random.choice(workers), signal.SIGKILL)
                    self.outcome.kills["a worker of an ingest"] += 1
                break
            time.sleep(0.05)
        self._wait_whole("ingest without one of its workers", ingest)

    def _start(
        self, verb: str, home: Home, settings: Mapping[str, str] = MappingProxyType({})
    ) -> subprocess.Popen[bytes]:
        ingest = ["ingest", str(self.sweep.folder), "--no-published", *self.setup.options, "--workers", "2"]
        rest = {"ingest": ingest, "compact": ["store", "compact"]}[verb]
        command = [sys.executable, "-m", "sweepscope", *rest, "--home", str(home.path)]
        environment = {**os.environ, **self.setup.environment, **settings}
        with self._errors(home).open("wb") as errors:
            return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=errors)

    def _errors(self, home: Home) -> Path:
        return self.folder / f"{home.path.name}.stderr"

    def _command(self, verb: str, home: Home | None = None) -> None:
        self._wait_whole(verb, self._start(verb, home or self.home))

    def _wait_whole(self, what: str, process: subprocess.Popen[bytes]) -> None:
        """Note an ending that was none of ours."""
        if code := process.wait():
            errors = " ".join(path.read_text(errors="replace")[-300:] for path in self.folder.glob("*.stderr"))
            self.outcome.stuck.append(f"{what} ended with {code}: {errors}")

    def _watch(self, kills: int) -> None:
        """Kill watchers, or the runs that they launch, in turn; after each the next one must ingest what is new."""
        for number in range(kills + 1 if kills else 0):
            name = self.sweep.grow()
            log = self.folder / "watch.log"
            with self._watcher(log) as watcher:
                begin = time.monotonic()
                if number < kills:
                    is_run = number % 2 == 0
                    what = self._kill_run() if is_run else self._kill_watcher(watcher)
                    self.outcome.kills[what] += 1
                if number < kills and number % 2:
                    continue  # the watcher itself is gone
                if not self._wait_for(name, WATCH_LIMIT_S):
                    self.outcome.stuck.append(f"{name} was not ingested by the watcher in {WATCH_LIMIT_S:.0f} s")
                self.outcome.seconds_to_ingest.append(time.monotonic() - begin)

    @contextmanager
    def _watcher(self, log: Path) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "sweepscope", "watch", str(self.sweep.folder), "--no-published"]
        environment = {**os.environ, **self.setup.environment}
        port = str(20_000 + self.random.randrange(20_000))
        with log.open("ab") as handle:
            watcher = subprocess.Popen(
                [*command, *self.setup.options, "--home", str(self.home.path), "--dagster-port", port],
                env=environment,
                stdout=handle,
                stderr=handle,
            )
        try:
            yield watcher
        finally:
            watcher.terminate()
            with suppress(subprocess.TimeoutExpired):
                watcher.wait(timeout=30)
            stop_all([watcher])

    def _kill_run(self) -> str:
        """Kill the first run that the watcher launches, while it works."""
        end = time.monotonic() + WATCH_LIMIT_S
        while time.monotonic() < end:
            for lock in (self.home.dagster / "working").glob("*.lock"):
                # A lock that nobody holds names a process that is gone, and whose number another may have now.
                if who := holder(lock):
                    with suppress(OSError, ValueError, IndexError):
                        os.kill(int(who.split()[1]), signal.SIGKILL)
                        return "run of the watcher"
            time.sleep(0.02)
        return "no run was launched"

    def _kill_watcher(self, watcher: subprocess.Popen[bytes]) -> str:
        time.sleep(self.random.uniform(5, 40))
        watcher.kill()
        watcher.wait()
        return "watcher"

    def _wait_for(self, name: str, seconds: float) -> bool:
        wanted = self.sweep.states[name][-1]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            connection = connect(current(self.home.path))
            query = "SELECT max(step) FROM steps WHERE source_path LIKE ?"
            with connection:
                ((last,),) = connection.execute(query, [f"%/{name}/%"]).fetchall()
            if last == wanted:
                return True
            time.sleep(0.5)
        return False

    def _compare_with_one_go(self) -> None:
        """The store and one that was built at once from the same files have the same rows."""
        other = Home.resolve(str(self.folder / "clean"))
        ingest = ["ingest", str(self.sweep.folder), "--no-published", "--home", str(other.path)]
        subprocess.run([sys.executable, "-m", "sweepscope", *ingest], capture_output=True, check=True)
        for home in (self.home, *self.others):
            self.outcome.half += verify(home).problems
            with connect(current(home.path)) as ours, connect(current(other.path)) as clean:
                for name, table in TABLES.items():
                    columns = [column.name for column in table.columns if column.name not in _NOT_CONTENT]
                    mine, theirs = (_rows(store, name, columns) for store in (ours, clean))
                    self.outcome.lost += [f"{name}: {row}" for row in (theirs - mine)]
                    self.outcome.doubled += [f"{name}: {row}" for row in (mine - theirs)]


def _is_worker(pid: int) -> bool:
    """Whether a process was started to read, by Dask or by the ingest, and is none of the housekeeping of Python."""
    try:
        words = command_line(pid)
    except OSError:
        return False
    return any("spawn_main" in word or "worker_process" in word for word in words)


def _rows(store: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]) -> Counter[tuple[object, ...]]:
    names = ", ".join(f'"{name}"::VARCHAR' for name in columns)
    return Counter(store.execute(f'SELECT {names} FROM "{table}"').fetchall())
