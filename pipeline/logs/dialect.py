"""What a dialect is: one framework's way of logging, stated as functions from lines to facts.

Parsing is a map and a fold. The map (a `Dialect`) turns lines into facts and never looks beyond a line (or the few
lines it declares), so it does not matter how a file was cut into blocks. The fold (`pipeline.logs.runs.assemble`) turns
facts into attempts, settings and outcomes. No dialect knows about files, runs or tables. A new log format is one module
with one `Dialect` and one line in `pipeline.logs.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatch
from functools import cached_property

import polars as pl

from sweepscope.pipeline.logs.facts import EVENT_FACTS, FACT_SCHEMAS, PEAK_FACTS, SETTING_FACTS, Facts

LineFacts = Callable[[pl.DataFrame], pl.DataFrame]
"""Lines (`engine.cleaning.LINES` plus `prefix`) to facts of one kind."""


def no_facts(schema: pl.Schema) -> LineFacts:
    """A dialect function that extracts nothing."""
    return lambda _lines: pl.DataFrame(schema=schema)


@dataclass(frozen=True)
class Sidecar:
    """A file beside the log that holds settings or a status.

    Attributes:
        pattern: file name (fnmatch, small letters).
        kind: word of vocab.FILE_KIND.
        read: text to columns of `runs` and their values (text); raises ValueError for a text that is not what the name
            promises.
        marks_run: the trainer wrote it into the run's own directory, so that all logs there are of one run and of that
            framework. Otherwise it counts only beside a single log.
        has_users_names: its names are those of a user's script: what `read` does not know of them is read as that of
            any trainer's configuration is.
    """

    pattern: str
    kind: str
    read: Callable[[str], Mapping[str, str]]
    marks_run: bool = True
    has_users_names: bool = False


@dataclass(frozen=True)
class History:
    """A file in which a trainer keeps its steps, beside its log or instead of one.

    `read` returns STEP_FACTS rows without their `source`; it raises ValueError for a text that is not what the name
    promises.
    """

    pattern: str
    read: Callable[[str], pl.DataFrame]


@dataclass(frozen=True)
class Tracked:
    """What a tracker's file holds of a run: STEP_FACTS rows without `source`, and columns of `runs` with their text."""

    steps: pl.DataFrame
    settings: Mapping[str, str]


@dataclass(frozen=True)
class BinaryHistory:
    """A history that is no text. `read` raises ValueError for bytes that are not what the name promises."""

    pattern: str
    read: Callable[[bytes], Tracked]


@dataclass(frozen=True)
class CombinedSetting:
    """A column of `runs` that follows from several printed values, which may be lines apart.

    Attributes:
        name: column of `runs`.
        value: expression over text columns named as the printed values; None is kept as the text "None". `arg:stepped`
            is known where the run logged a step, so that everything printed before it is complete: only then does a
            value that is missing mean anything.
        origins: the inputs that matter most, in order: the first known one lends its source and line.
        setting_source: replaces that source, for a value that is only a documented default.
    """

    name: str
    value: pl.Expr = field(compare=False)
    origins: tuple[str, ...] = ()
    setting_source: str | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """Every printed value that the expression reads, `origins` first."""
        return tuple(dict.fromkeys((*self.origins, *self.value.meta.root_names())))


@dataclass(frozen=True)
class Fit:
    """How well a dialect fits the lines of a log.

    Attributes:
        step_lines: numbers of the lines in which it finds steps.
        values: how many kinds of values it finds in them, those that it passes over too.
        wanted: how many kinds it knows.
        settings: columns of `runs` that other lines fill.
    """

    step_lines: frozenset[int]
    values: int
    wanted: int
    settings: frozenset[str]


@dataclass(frozen=True)
class Dialect:
    """One framework's way of logging.

    Attributes:
        name: word of vocab.FRAMEWORK.
        module: the `__name__` of the module that states it: its source, and that of what it imports, is its version.
        signature_literals: texts that only this framework prints; the dialect with the most hits reads the file.
        literals_by_function: for each function that the dialect has, texts of which a line holds one that it can read.
            A function is handed no other lines, so that patterns for an argument dump never run over a million step
            lines. Keep them specific: they decide the speed.
        steps, settings, peaks, events: lines to facts.
        sidecars: files beside the log.
        histories: files that hold steps, too.
        combined: settings that follow from several of the values that `settings` reports. A value that only feeds them
            is named `arg:<as printed>`, which is no column of `runs` and so goes no further.
        finalize: corrects the facts of whole files, such as the unit of a counter; keeps sources apart.
        log_names: patterns (fnmatch, small letters) of names of logs, beside the usual ones.
        is_declared: a user's dialect file describes it; it comes before all others where its signature occurs.
        fit: how well it fits lines; of a dialect without a signature, which reads logs that no other one knows.
        constants: folder, "" for all, to columns of `runs` and values that hold for the logs in it.
        is_last_resort: its signature is printed under other frameworks, too; it reads what no other dialect knows.
        steps_show_current_memory: `mem_allocated_bytes` of its steps is what is in use when the line is printed, which
            after a step is far below the peak: it is no peak of the run.
        has_numbered_lines: a number and a colon in front of a line are its step's, and not the rank that `srun --label`
            puts there.
        revision: of a dialect that a file describes, a number that changes with the file.
        claims: a number that grows whenever the signatures of the declared dialects change. Any file may then have
            another owner, so all are read again; 0 where there are none.
    """

    name: str
    module: str
    signature_literals: tuple[str, ...]
    literals_by_function: Mapping[str, tuple[str, ...]]
    steps: LineFacts
    settings: LineFacts = field(default=no_facts(SETTING_FACTS))
    peaks: LineFacts = field(default=no_facts(PEAK_FACTS))
    events: LineFacts = field(default=no_facts(EVENT_FACTS))
    sidecars: tuple[Sidecar, ...] = ()
    histories: tuple[History | BinaryHistory, ...] = ()
    combined: tuple[CombinedSetting, ...] = ()
    finalize: Callable[[Facts], Facts] | None = None
    log_names: tuple[str, ...] = ()
    fit: Callable[[pl.DataFrame], Fit] | None = None
    constants: tuple[tuple[str, Mapping[str, str]], ...] = ()
    is_declared: bool = False
    is_last_resort: bool = False
    steps_show_current_memory: bool = False
    has_numbered_lines: bool = False
    revision: int = 0
    claims: int = 0

    def __post_init__(self) -> None:
        stated = {part.name for part in fields(self) if getattr(self, part.name) is not part.default} & set(
            FACT_SCHEMAS
        )
        if unnamed := stated - self.literals_by_function.keys():
            raise ValueError(f"{self.name}: name the literals of {min(unnamed)} in literals_by_function")

    @cached_property
    def required_literals(self) -> frozenset[str]:
        """Texts of which a line holds one that any of the functions can read."""
        return frozenset(literal for literals in self.literals_by_function.values() for literal in literals)


@dataclass(frozen=True)
class ResultTable:
    """A table of finished runs that a trainer or script writes, one row per run.

    `module` is the `__name__` of the module that states it. `matches` is given the head of the text. `read` returns
    rows named as columns of `runs` with `line_no`, and rejects with `line_no`, `reason`, `raw`.
    """

    name: str
    module: str
    framework: str
    matches: Callable[[str], bool]
    read: Callable[[str], tuple[pl.DataFrame, pl.DataFrame]]


def marks_run(path: str, dialects: Sequence[Dialect]) -> bool:
    """Whether the first sidecar of that name marks its directory as a run's."""
    name = path.rsplit("/", 1)[-1].lower()
    sidecars = (sidecar for dialect in dialects for sidecar in dialect.sidecars)
    return next((sidecar.marks_run for sidecar in sidecars if fnmatch(name, sidecar.pattern)), False)
