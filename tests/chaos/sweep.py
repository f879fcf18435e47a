"""A sweep that grows while it is ingested: run directories appear, and their logs get more steps."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.picotron_runs import picotron_run


@dataclass
class GrowingSweep:
    """Run directories in `folder`; `states` has every number of steps that the log of a run has ever had."""

    folder: Path
    random: random.Random
    states: dict[str, list[int]] = field(default_factory=dict)

    @property
    def legal(self) -> Path:
        """File with `states`, written before the logs grow: what a reader may see."""
        return self.folder.parent / "legal.json"

    def grow(self) -> str:
        """Name of the run that is new or has more steps now."""
        if self.states and self.random.random() < 0.5:
            name = self.random.choice(sorted(self.states))
            self._write(name, self.states[name][-1] + self.random.randint(1, 5))
        else:
            name = f"run{len(self.states):04d}"
            self._write(name, self.random.randint(1, 9))
        return name

    def _write(self, name: str, steps: int) -> None:
        self.states.setdefault(name, []).append(steps)
        temporary = self.legal.with_suffix(".new")
        temporary.write_text(json.dumps(self.states), encoding="utf-8")
        temporary.replace(self.legal)
        number = int(name.removeprefix("run"))
        with TemporaryDirectory() as scratch:
            made = picotron_run(
                Path(scratch),
                name=name,
                dp=2 ** (number % 4),
                steps=steps,
                planned=1000,
                job=1000 + number,
                tokens_per_s=4000.0 + number,  # else two runs were copies of one
            )
            target = self.folder / name
            if not target.exists():
                made.rename(target)
                return
            (log,) = made.glob("log_*.out")
            grown = target / log.name
            with grown.open("ab") as handle:
                handle.write(log.read_bytes()[grown.stat().st_size :])
