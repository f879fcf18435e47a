"""What a framework is to a planned run: which layouts it can run, its configuration files, and its command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweepscope.pipeline.launch.planned import Planned

Files = Mapping[str, str]
"""Name of a file in the run's directory, and its text."""

HERE = '"$RUN_DIR"'
"""The run's directory, in words of a shell."""

_DEGREES = {
    "tp": "tensor parallelism",
    "pp": "pipeline parallelism",
    "cp": "context parallelism",
    "ep": "expert parallelism",
    "vpp": "interleaved pipelines",
    "dp_replicate": "copies of sharded states",
}


@dataclass(frozen=True)
class Framework:
    """A framework that launch files can be written for.

    Attributes:
        name: as `--framework` takes it.
        framework: word of vocab.FRAMEWORK that its logs get.
        about: versions and files, for people.
        degrees: those of tp, pp, cp, ep, vpp and dp_replicate that it can have above 1.
        zero_stages: ZeRO stages that it has on several data-parallel ranks.
        recompute: words of vocab.RECOMPUTE.
        schedules: pipeline schedules, as a search names them.
        states: columns of `runs` that its files state, which reading them back must give.
        files: its configuration.
        command: words of a shell after torchrun's own options; HERE stands for the run's directory.
        environment: variables that it needs beside those of every run.
        refuse: further reasons why it cannot run a layout.
        takes_moe: whether its files can describe experts.
        precisions: of matrix products, that its files can ask for.
        most_cpu_ranks: ranks that it can start on a CPU, for a trial; 0 where it needs an accelerator.
    """

    name: str
    framework: str
    about: str
    degrees: frozenset[str]
    zero_stages: tuple[int, ...]
    recompute: tuple[str, ...]
    schedules: tuple[str, ...]
    states: tuple[str, ...]
    files: Callable[[Planned], Files]
    command: Callable[[Planned], tuple[str, ...]]
    environment: Mapping[str, str] = field(default_factory=dict)
    refuse: Callable[[Mapping[str, Any]], str | None] = lambda _row: None
    takes_moe: bool = False
    precisions: tuple[str, ...] = ("bf16",)
    most_cpu_ranks: int = 0

    def refusal(self, row: Mapping[str, Any]) -> str | None:
        """Why it cannot run the layout of a row of a search or of `planned_runs`; None where it can."""
        for name, what in _DEGREES.items():
            if name not in self.degrees and (row.get(name) or 1) > 1:
                return f"{self.name} has no {what}"
        is_alone = row["dp"] * (row.get("cp") or 1) == 1
        if row["zero_stage"] not in self.zero_stages and not (is_alone and row["zero_stage"] == 0):
            return f"{self.name} has no ZeRO-{row['zero_stage']}" if row["zero_stage"] else f"{self.name} always shards"
        if (row.get("recompute") or "none") not in self.recompute:
            return f"{self.name} has no {row['recompute']} recomputation"
        if (row.get("pp") or 1) > 1 and row["pipeline_schedule"] not in self.schedules:
            return f"{self.name} has no {row['pipeline_schedule']} schedule"
        return self.refuse(row) or self.refusal_of_precision(row.get("precision"))

    def refusal_on_cpu(self, num_gpus: int) -> str | None:
        """Why a run of so many ranks cannot be tried on a CPU; None where it can."""
        if not self.most_cpu_ranks:
            return f"{self.name} starts on accelerators only"
        if num_gpus > self.most_cpu_ranks:
            return f"{self.name} takes {self.most_cpu_ranks:,} rank on a CPU, not {num_gpus:,}"
        return None

    @property
    def limits(self) -> dict[str, Any]:
        """What a search is narrowed to, so that it looks at nothing that would be refused: fields of a Request."""
        alone = {f"max_{name}": 1 for name in ("tp", "pp", "cp", "ep", "vpp") if name not in self.degrees}
        return {**alone, "zero_stages": tuple(sorted({0, *self.zero_stages})), "recompute": self.recompute}

    def refusal_of_model(self, num_experts: int) -> str | None:
        """Why it cannot run a model with so many experts (0: dense); None where it can."""
        return (
            f"its launch files for {self.name} cannot describe experts" if num_experts and not self.takes_moe else None
        )

    def refusal_of_precision(self, precision: str | None) -> str | None:
        """Why its files cannot ask for a precision of matrix products; None where they can, as for NULL."""
        if precision is None or precision in self.precisions:
            return None
        return f"its launch files for {self.name} cannot ask for {precision.upper()}"
