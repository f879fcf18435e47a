"""Readers of the store while its writers are killed: each read must be of a whole state, and none may go back."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from sweepscope.pipeline.errors import NoStoreError, SweepscopeError
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.published import connect, current

_QUERY = """
SELECT string_split(runs.source_path, '/')[-2] AS run, count(DISTINCT run_id), count(step), count(DISTINCT step),
       max(step), bool_and(settings > 0)
FROM runs
LEFT JOIN steps USING (run_id)
LEFT JOIN (SELECT run_id, count(*) AS settings FROM settings GROUP BY run_id) USING (run_id)
WHERE origin = 'measured' GROUP BY run
"""


@dataclass
class Readers:
    """Threads that query the published store until they are stopped, and what they found wrong.

    Between two reads a thread rests `rest` times as long as the last one took.
    """

    home: Home
    legal: Path
    number: int = 2
    rest: float = 0.0
    reads: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    half: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Readers:
        self._threads = [threading.Thread(target=self._read_on) for _ in range(self.number)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _read_on(self) -> None:
        seen: dict[str, int] = {}
        while not self._stop.is_set():
            begin = time.monotonic()
            try:
                seen = self._read(seen)
            except NoStoreError:
                time.sleep(0.1)
            except (SweepscopeError, duckdb.Error) as error:
                self.half.append(f"a read failed: {error}")
            time.sleep(0.05 + self.rest * (time.monotonic() - begin))

    def _read(self, before: dict[str, int]) -> dict[str, int]:
        connection = connect(current(self.home.path))
        try:
            rows = connection.execute(_QUERY).fetchall()
        finally:
            connection.close()
        legal = json.loads(self.legal.read_text(encoding="utf-8"))
        seen = {}
        for run, attempts, steps, distinct, last, has_settings in rows:
            seen[run] = steps
            if attempts != 1 or steps != distinct:
                self.doubled.append(f"{run}: {attempts} attempts, {steps} steps of which {distinct} differ")
            if steps != last or steps not in legal[run] or not has_settings:
                self.half.append(f"{run}: {steps} steps up to {last}, settings {has_settings}, legal {legal[run]}")
        for run, steps in before.items():
            if seen.get(run, 0) < steps:
                self.lost.append(f"{run}: {steps} steps, now {seen.get(run)}")
        self.reads += 1
        return seen
