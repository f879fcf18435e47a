"""From the moment that the files of new runs lie there to the moment that the store has them, with a watcher beside."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sweepscope.pipeline.commands.servers import stop_all
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.simulate.sweep import write_sweep
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.publications import publications
from sweepscope.pipeline.store.published import connect, current
from tests.load.growth import LAST

EVERY_S = 5
TIMES = 3
MOST_S = 300.0
"""A run that does not show after so long is lost."""


@dataclass(frozen=True)
class Lag:
    """Seconds until the store had LAST new runs, of which publishing took some."""

    seconds: float
    publish_s: float


def lags(home: Home, landing: Path, folders: Sequence[Path], *, times: int = TIMES) -> Iterator[Lag]:
    """What it took each of `times` times.

    Args:
        home: gets the runs of `folders`, where it lacks them.
        landing: holds the folders, and is watched.

    Raises:
        TimeoutError: new runs did not show.
    """
    ingest_paths(home, [str(folder) for folder in folders], with_published=False)
    with _watcher(home, landing):
        for number in range(times):
            new = write_sweep(landing / f"new{number:03d}", runs=LAST, seed=9000 + number)
            begin = time.monotonic()
            while _runs_below(home, new) < LAST:
                if time.monotonic() - begin > MOST_S:
                    raise TimeoutError(f"runs of {new} did not show within {MOST_S:.0f} s")
                time.sleep(0.1)
            yield Lag(time.monotonic() - begin, publications(home)[-1].seconds)


@contextmanager
def _watcher(home: Home, landing: Path) -> Iterator[None]:
    """A watcher that has started and looks every EVERY_S seconds."""
    port = str(20_000 + random.randrange(20_000))  # noqa: S311 -- a port to be free, not a secret to be guessed
    options = ["--no-published", "--dagster-port", port, "--every", str(EVERY_S), "--home", str(home.path)]
    command = [sys.executable, "-m", "sweepscope", "watch", str(landing), *options]
    with tempfile.TemporaryFile() as log:
        watcher = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        try:
            if watcher.stdout is None or not watcher.stdout.readline():
                log.seek(0)
                raise RuntimeError(f"the watcher ended with {watcher.wait()}: {log.read()[-500:].decode()}")
            yield
        finally:
            stop_all([watcher])


def _runs_below(home: Home, folder: Path) -> int:
    connection = connect(current(home.path))
    try:
        query = "SELECT count(DISTINCT run_dir) FROM runs WHERE starts_with(source_path, $folder)"
        ((runs,),) = connection.execute(query, {"folder": f"{folder}/"}).fetchall()
        return int(runs)
    finally:
        connection.close()
