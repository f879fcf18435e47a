"""Where and when a run dies, and the lines that any death of a worker leaves: its traceback, torchrun's report.

Sources: torch/distributed/elastic/multiprocessing/{api,errors}.py.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime

from sweepscope.pipeline.simulate.console import LogLine, agent, worker
from sweepscope.pipeline.simulate.truth import SimulatedRun


@dataclass(frozen=True)
class Scene:
    """Where and when a run ends. `rank` fails first; ranks beyond the first node print to the same file."""

    run: SimulatedRun
    script: str
    at: datetime
    rank: int
    host: str
    pid: int
    rng: random.Random

    @property
    def ranks(self) -> list[int]:
        """Ranks whose last words are kept: up to four, the failing one first."""
        others = [r for r in range(self.run.num_gpus) if r != self.rank]
        return [self.rank, *others[:3]]


def c10_stamp(scene: Scene) -> str:
    """The time of death as PyTorch's C++ logger prints it."""
    return f"{scene.at.month}{scene.at:%d %H:%M:%S}.{scene.rng.randrange(10**9):09d}"


def traceback(scene: Scene, rank: int, frames: tuple[str, ...], error: str) -> list[LogLine]:
    """A traceback as torch's excepthook prints it: every line carries the rank."""
    texts = ["Traceback (most recent call last):"]
    for number, name in enumerate(frames):
        texts += [f'  File "/opt/train/{scene.script}", line {120 + 37 * number}, in {name}', f"    {name}(batch)"]
    return worker((f"[rank{rank}]: {text}" for text in (*texts, error)), rank)


def child_failed(scene: Scene, exitcode: int, why: str) -> list[LogLine]:
    """torchrun's agent: it stops the other workers, then raises ChildFailedError with its table."""
    local = scene.rank % scene.run.gpus_per_node
    stamp = f"{scene.at:%m%d %H:%M:%S}.{scene.rng.randrange(1000):03d}000 {scene.pid - 50}"
    api = "torch/distributed/elastic/multiprocessing/api.py"
    name = {-6: "  (SIGABRT)", -9: "  (SIGKILL)", -11: "  (SIGSEGV)"}.get(exitcode, "")
    return agent(
        [
            *(f"W{stamp} {api}:900] Sending process {scene.pid + k} closing signal SIGTERM" for k in range(1, 4)),
            f"E{stamp} {api}:874] failed (exitcode: {exitcode}) local_rank: {local} (pid: {scene.pid}) of binary: "
            "/opt/env/bin/python3",
            "Traceback (most recent call last):",
            '  File "/opt/env/bin/torchrun", line 8, in <module>',
            "    sys.exit(main())",
            '  File "/opt/env/site-packages/torch/distributed/launcher/api.py", line 264, in launch_agent',
            "    raise ChildFailedError(",
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
            "============================================================",
            f"{scene.script} FAILED",
            "------------------------------------------------------------",
            "Failures:",
            "  <NO_OTHER_FAILURES>",
            "------------------------------------------------------------",
            "Root Cause (first observed failure):",
            "[0]:",
            f"  time      : {scene.at:%Y-%m-%d_%H:%M:%S}",
            f"  host      : {scene.host}",
            f"  rank      : {scene.rank} (local_rank: {local})",
            f"  exitcode  : {exitcode} (pid: {scene.pid}){name}",
            "  error_file: <N/A>",
            f"  traceback : {why}",
            "============================================================",
        ]
    )
