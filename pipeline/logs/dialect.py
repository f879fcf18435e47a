"""What a dialect is, and the facts that it extracts. No dialect knows about files, runs or tables.

Parsing is a map and a fold. The map (a `Dialect`) turns lines into facts and never looks beyond a line (or the few
lines it declares), so it does not matter how a file was cut into blocks. The fold (`pipeline.logs.runs.assemble`) turns
facts into attempts, configurations and outcomes. A new log format is one file with one `Dialect` and one line in
`pipeline.logs.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatch
from functools import cache, cached_property, wraps

import polars as pl

from sweepscope.pipeline.text.line_templates import holding

STEP_FACTS = pl.Schema(
    {
        "source": pl.Int64(),
        "line_no": pl.Int64(),
        "rank": pl.Int64(),
        "ts": pl.Datetime("us"),
        "step": pl.Int64(),
        "steps_planned": pl.Int64(),
        "loss": pl.Float64(),
        "step_time_s": pl.Float64(),
        "tokens_per_s": pl.Float64(),
        "tokens_per_s_per_gpu": pl.Float64(),
        "tflops_per_gpu_logged": pl.Float64(),
        "mfu_logged": pl.Float64(),
        "mem_allocated_bytes": pl.Int64(),
        "mem_reserved_bytes": pl.Int64(),
        "grad_norm": pl.Float64(),
        "learning_rate": pl.Float64(),
        "consumed_tokens": pl.Int64(),
        "text": pl.String(),
    }
)
"""One row per line that looks like a metric line. `step` NULL: the line did not parse and becomes a reject."""

SETTING_FACTS = pl.Schema(
    {"source": pl.Int64, "line_no": pl.Int64, "name": pl.String, "value": pl.String, "setting_source": pl.String}
)
"""One row per configuration value: `name` is a column of `runs`, `value` its text."""

GAUGE_FACTS = pl.Schema({"source": pl.Int64, "line_no": pl.Int64, "name": pl.String, "value": pl.Float64})
"""One row per observation of which the run keeps the largest (peak memory); `name` is a column of `runs`."""

EVENT_FACTS = pl.Schema(
    {
        "source": pl.Int64(),
        "line_no": pl.Int64(),
        "ts": pl.Datetime("us"),
        "kind": pl.String(),
        "rank": pl.Int64(),
        "host": pl.String(),
        "text": pl.String(),
    }
)
"""One row per evidence line and kind."""

_ROWS = 1 << 18
"""Rows whose order is looked at at once: of millions, the differences would take as much memory as a column each."""

LineFacts = Callable[[pl.DataFrame], pl.DataFrame]


def no_facts(schema: pl.Schema) -> LineFacts:
    """A dialect function that extracts nothing."""
    return lambda _lines: pl.DataFrame(schema=schema)


@dataclass(frozen=True)
class Sidecar:
    """A file beside the log that holds configuration or a status.

    `read` returns canonical names and values (text), or raises ValueError when the text is not what the name
    promises. `kind` is a word of vocab.FILE_KIND. `marks_run`: the run's trainer left it in
    the run's own directory, so the logs there are of one run and of that framework; else it says something only where
    it lies beside a single log.
    """

    pattern: str
    kind: str
    read: Callable[[str], Mapping[str, str]]
    marks_run: bool = True


@dataclass(frozen=True)
class History:
    """A file in which a trainer keeps its steps, beside its log or instead of one.

    `read` returns STEP_FACTS rows without their `source`, or raises ValueError when the text is not what the name
    promises.
    """

    pattern: str
    read: Callable[[str], pl.DataFrame]


@dataclass(frozen=True)
class CombinedSetting:
    """A column of `runs` that follows from several printed values, which may stand lines apart.

    Attributes:
        name: column of `runs`.
        value: expression over text columns named as the printed values; None is kept as the text "None". `arg:stepped`
            is known where the run logged a step: what stands before it was printed to its end. Only such a print tells
            by leaving something out.
        told_by: the values that tell most, in order: the first known one lends its source and line.
        setting_source: replaces that source, for a value that is only a documented default.
    """

    name: str
    value: pl.Expr = field(compare=False)
    told_by: tuple[str, ...] = ()
    setting_source: str | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """Every printed value that the expression reads, the telling ones first."""
        return tuple(dict.fromkeys((*self.told_by, *self.value.meta.root_names())))


@dataclass(frozen=True)
class Dialect:
    """One framework's way of logging.

    Attributes:
        name: word of vocab.FRAMEWORK.
        version: raise it when the same file would parse differently; known files are then read again.
        signature: literals that only this framework prints; the dialect with the most hits reads the file.
        anchors: literals without which a line is of no interest. Keep them specific: they are the speed.
        narrowed: the anchors of single functions (`steps`, `settings`, `gauges`, `events`) that need fewer of them: a
            function is handed the lines that hold one of its own, so that patterns for an argument dump never run over
            a million step lines. A function that is not named here is handed every line with an anchor.
        steps, settings, gauges, events: lines (pipeline.logs.engine.cleaning.LINES plus `prefix`) to facts.
        sidecars: files beside the log.
        histories: files that hold steps, too.
        combined: settings that follow from several of the values that `settings` reports. A value that only feeds them
            is named `arg:<as printed>`, which is no column of `runs` and so goes no further.
        settle: what only the whole file can say, such as the unit of a counter. It is given the facts of all blocks of
            the files that this dialect owns, and keeps sources apart.
        log_names: patterns (fnmatch, small letters) of names that are logs although nothing else says so.
        is_declared: a user's dialect file describes it; where its signature stands, it comes before all others.
        is_last_resort: its signature is printed under other frameworks, too; it reads what no other dialect knows.
        steps_show_current_memory: `mem_allocated_bytes` of its steps is what is in use when the line is printed, which
            after a step is far below the peak. It is then no peak of the run; a gauge may still tell one.
        claims: a number that grows whenever the signatures of the declared dialects change. Any file may then have
            another owner, so all are read again; 0 where there are none.
    """

    name: str
    version: int
    signature: tuple[str, ...]
    anchors: tuple[str, ...]
    steps: LineFacts
    settings: LineFacts = field(default=no_facts(SETTING_FACTS))
    gauges: LineFacts = field(default=no_facts(GAUGE_FACTS))
    events: LineFacts = field(default=no_facts(EVENT_FACTS))
    sidecars: tuple[Sidecar, ...] = ()
    histories: tuple[History, ...] = ()
    combined: tuple[CombinedSetting, ...] = ()
    settle: Callable[[Facts], Facts] | None = None
    log_names: tuple[str, ...] = ()
    is_declared: bool = False
    is_last_resort: bool = False
    steps_show_current_memory: bool = False
    claims: int = 0
    narrowed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def needed(self) -> frozenset[str]:
        """Literals of which every line that any of the functions is handed holds one."""
        silent = {one.name for one in fields(self) if getattr(self, one.name) is one.default}
        if {"steps", "settings", "gauges", "events"} - silent - self.narrowed.keys():
            return frozenset(self.anchors)
        return frozenset(literal for literals in self.narrowed.values() for literal in literals)

    @cached_property
    def is_anchored(self) -> bool:
        """Whether a line that holds a needed literal cannot but hold an anchor."""
        return all(any(anchor in literal for anchor in self.anchors) for literal in self.needed)


@dataclass(frozen=True)
class ResultTable:
    """A table of finished runs that a trainer or script writes, one row per run.

    `matches` looks at the head of the text. `read` returns rows named as columns of `runs` with `line_no`, and rejects
    with `line_no`, `reason`, `raw`.
    """

    name: str
    version: int
    framework: str
    matches: Callable[[str], bool]
    read: Callable[[str], tuple[pl.DataFrame, pl.DataFrame]]


def marks_run(path: str, dialects: Sequence[Dialect]) -> bool:
    """Whether the first sidecar of that name tells that its directory is a run's."""
    name = path.rsplit("/", 1)[-1].lower()
    sidecars = (sidecar for dialect in dialects for sidecar in dialect.sidecars)
    return next((sidecar.marks_run for sidecar in sidecars if fnmatch(name, sidecar.pattern)), False)


@dataclass(frozen=True)
class Facts:
    """What a batch of lines says, before anything is decided about runs."""

    steps: pl.DataFrame
    settings: pl.DataFrame
    gauges: pl.DataFrame
    events: pl.DataFrame

    @classmethod
    @cache
    def empty(cls) -> Facts:
        """No facts at all."""
        return cls(*(pl.DataFrame(schema=s) for s in (STEP_FACTS, SETTING_FACTS, GAUGE_FACTS, EVENT_FACTS)))

    @classmethod
    def only_events(cls, events: pl.DataFrame) -> Facts:
        """Events and nothing else."""
        nothing = cls.empty()
        return cls(nothing.steps, nothing.settings, nothing.gauges, events)

    def map(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Facts:
        """`change` applied to each kind of facts; it may use the columns they share, `source` and `line_no`."""
        return Facts(change(self.steps), change(self.settings), change(self.gauges), change(self.events))

    @classmethod
    def concat(cls, parts: Iterable[Facts]) -> Facts:
        """All facts of several blocks, in the order given."""
        parts = [part for part in parts if part is not cls.empty()]
        if len(parts) < 2:
            return parts[0] if parts else cls.empty()
        return cls(
            steps=pl.concat([p.steps for p in parts]),
            settings=pl.concat([p.settings for p in parts]),
            gauges=pl.concat([p.gauges for p in parts]),
            events=pl.concat([p.events for p in parts]),
        )


def conform(frame: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """`frame` with exactly the columns of a fact schema; missing ones are NULL."""
    have = frame.columns
    return frame.select(
        (pl.col(name) if name in have else pl.lit(None)).cast(dtype).alias(name) for name, dtype in schema.items()
    )


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows in the order of their files and lines; without a copy where they are, as those of a single file."""
    places = frame["source", "line_no"]  # a query over the frame would put together the pieces of all columns
    overlapping = (places[at : at + _ROWS + 1] for at in range(0, places.height, _ROWS))
    source, line_no = pl.col("source").diff(), pl.col("line_no").diff()
    is_back = ((source < 0) | ((source == 0) & (line_no < 0))).any()
    if any(rows.select(is_back).item() for rows in overlapping):
        return frame.sort("source", "line_no", maintain_order=True)
    return frame


def once_per_text(settings: LineFacts) -> LineFacts:
    """`settings`, which looks at nothing but `text`, asked about each text once.

    Every rank and every run of a sweep prints the same dump.
    """

    @wraps(settings)
    def of_lines(lines: pl.DataFrame) -> pl.DataFrame:
        texts = lines.select("text").unique(maintain_order=True)
        if texts.height * 2 > lines.height:
            return settings(lines)
        asked = texts.with_columns(source=pl.lit(0, pl.Int64), line_no=pl.int_range(pl.len()))
        said = settings(asked).drop("source").join(asked, on="line_no", maintain_order="left")
        found = lines.select("source", "line_no", "text").join(
            said.drop("source", "line_no"), on="text", maintain_order="left_right"
        )
        return conform(found, SETTING_FACTS)

    return of_lines


def named_settings(lines: pl.DataFrame, pattern: str, names: Mapping[str, str], *, setting_source: str) -> pl.DataFrame:
    """Settings from lines like `name ... value`.

    `pattern` has two groups, the framework's name and the value, and may match several times in a line unless it starts
    with an anchor; `names` maps the framework's names to columns of `runs`. Other names are left alone.
    """
    near = lines.filter(holding(names))
    if near.is_empty():
        return pl.DataFrame(schema=SETTING_FACTS)
    # Every rank and every run of a sweep prints the same dump: each text is looked at once.
    texts = near.select("text").unique(maintain_order=True)
    text = pl.col("text")
    if pattern.startswith("^"):
        hits = texts.with_columns(name=text.str.extract(pattern, 1), value=text.str.extract(pattern, 2))
    else:
        each = texts.with_columns(hit=text.str.extract_all(pattern)).explode("hit")
        hits = each.with_columns(
            name=pl.col("hit").str.extract(pattern, 1), value=pl.col("hit").str.extract(pattern, 2)
        )
    known = hits.filter(pl.col("name").is_in(list(names)))
    found = near.select("source", "line_no", "text").join(known, on="text", maintain_order="left_right")
    found = found.with_columns(
        name=pl.col("name").replace_strict(dict(names), default=None, return_dtype=pl.String),
        value=pl.col("value").str.strip_chars().str.strip_chars("'\""),
        setting_source=pl.lit(setting_source),
    )
    return conform(found, SETTING_FACTS)


def said_settings(lines: pl.DataFrame, patterns: Iterable[tuple[str, str]]) -> pl.DataFrame:
    """Settings that a log says in sentences: the first group of each (name, pattern), as printed."""
    pairs = list(patterns)
    near = lines.filter(pl.col("text").str.contains("|".join(f"(?:{pattern})" for _, pattern in pairs)))
    if near.is_empty():
        return pl.DataFrame(schema=SETTING_FACTS)
    texts = near.select("text").unique(maintain_order=True)
    each = texts.with_columns(pl.col("text").str.extract(pattern).alias(str(n)) for n, (_, pattern) in enumerate(pairs))
    said = each.unpivot(index="text", variable_name="pair").drop_nulls("value")
    found = near.select("source", "line_no", "text").join(said, on="text", maintain_order="left_right")
    names = {str(n): name for n, (name, _) in enumerate(pairs)}
    return conform(
        found.with_columns(name=pl.col("pair").replace_strict(names), setting_source=pl.lit("log_line")), SETTING_FACTS
    )
