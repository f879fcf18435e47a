"""Lines that show where a launch begins, and where one has ended, whatever the steps do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import polars as pl

from sweepscope.pipeline.io.spill import SLICE_ROWS
from sweepscope.pipeline.logs.evidence import endings, jobs, symptoms
from sweepscope.pipeline.logs.facts import RUN_HEADER, Facts, in_order
from sweepscope.pipeline.logs.sidecars.model_file import NAMES

LINES = pl.Schema({"source": pl.Int64, "line_no": pl.Int64})
"""One row per such line."""

APART = timedelta(seconds=20)
"""Between the beginnings of two launches; the processes of one begin within less."""

_MIN_NAMES = 3
"""Names that a configuration has at least: a line or two of it are printed for many reasons."""

_OF_MODEL = (*NAMES, "model", "tie_word_embeddings", "arg:hidden_act")
"""Settings of a model alone: a trainer prints its configuration once more with each checkpoint that it saves."""

_STEPS_BEFORE = 8
"""Steps that one process prints in front of an exception, each once."""

LAST_KINDS = ("child_failed", "exit_code", "sigkill", "timeout", "cancelled", "preempted", "node_fail")
"""Events after which no process of a launch trains on, but for a few lines that were on their way."""

_TRAINED_KINDS = ("training_end", endings.KIND)
"""Events with which a training ends as it was meant to."""


def launches(facts: Facts) -> pl.DataFrame:
    """LINES with which a launch begins.

    A launcher or trainer announces itself, a script the run that comes next, a trainer dumps its configuration again,
    or another job begins to write.
    """
    announced = facts.events.filter(pl.col("kind") == "launch").select(LINES.names())
    lines = _without_other_ranks(pl.concat([announced, _dumped_again(facts)]).unique().sort(LINES.names()), facts)
    announced_by_script = facts.events.filter(kind=RUN_HEADER).select(LINES.names())
    every = [lines, announced_by_script, jobs.launches(facts.events, facts.steps)]
    return pl.concat(every).unique().sort(LINES.names())


def ends(facts: Facts) -> pl.DataFrame:
    """LINES behind which a step that was logged before is one of another launch."""
    last = facts.events.filter(pl.col("kind").is_in(LAST_KINDS)).select(LINES.names())
    return pl.concat([last, _raised_alone(facts)]).unique().sort(LINES.names())


def _raised_alone(facts: Facts) -> pl.DataFrame:
    """LINES of exceptions behind steps of a single process: of several, the others may print the same steps behind it.

    A training that begins again from its last checkpoint may do so with the very step that failed.
    """
    raised = facts.events.filter(pl.col("kind") == "exception").select(LINES.names()).unique().sort(LINES.names())
    if raised.is_empty():
        return raised
    is_next = (pl.col("step").diff() > 0) | (pl.col("source").diff() != 0)
    is_alone = is_next.fill_null(value=True).cast(pl.Int8).rolling_min(_STEPS_BEFORE, min_samples=1) == 1
    parts = []
    for steps in _slices(facts):
        rows = steps.drop_nulls("step").with_columns(is_alone=is_alone, last="line_no")
        at = raised.join_asof(rows, on="line_no", by="source", strategy="backward", check_sortedness=False)
        parts.append(at.drop_nulls("last").select(*LINES.names(), "last", "is_alone"))
    newest = pl.concat(parts).sort("last").unique(LINES.names(), keep="last", maintain_order=True)
    return newest.filter("is_alone").select(LINES.names())


def _dumped_again(facts: Facts) -> pl.DataFrame:
    """LINES with which a dump of arguments begins that repeats, after steps, at least half of that before them."""
    dumped = facts.settings.filter(pl.col("setting_source") == "argument_dump")
    if dumped.is_empty():
        return pl.DataFrame(schema=LINES)
    rows = _with_steps_before(dumped.select("source", "line_no", "name"), facts)
    first = rows.filter(pl.col("before") == 0).select("source", "name").unique()
    size = first.group_by("source").agg(size=pl.len())
    again = rows.filter(pl.col("before") > 0).join(first, on=["source", "name"], how="semi")
    dumps = again.group_by("source", "before").agg(
        pl.col("line_no").min(), names=pl.col("name").n_unique(), is_model=pl.col("name").is_in(_OF_MODEL).all()
    )
    is_much = pl.col("names") >= pl.max_horizontal(_MIN_NAMES, pl.col("size") / 2)
    found = dumps.join(size, on="source").filter(is_much, ~pl.col("is_model"))
    return _without_evaluations(found.select(LINES.names()), facts)


def _without_evaluations(dumps: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """`dumps` but for those behind the end of a file's last training that no step and no failure follows.

    It has ended where it says so, or with the last of the steps that it plans. What evaluates a model reads its
    configuration once more, and may print it into the same file.
    """
    if dumps.is_empty():
        return dumps
    is_end = pl.col("kind").is_in(_TRAINED_KINDS)
    is_failure = ~is_end & ~pl.col("kind").is_in(["launch", jobs.KIND, *symptoms.KINDS])
    events = facts.events.select("source", "line_no", is_end=is_end, is_failure=is_failure)
    ended = pl.concat([events.filter("is_end").select(LINES.names()), _last_planned(facts)])
    ended = ended.group_by("source").agg(ended=pl.col("line_no").max())
    failed = events.filter("is_failure").group_by("source").agg(failed=pl.col("line_no").max())
    steps = pl.concat(
        part.drop_nulls("step").group_by("source").agg(pl.col("line_no").max()) for part in _slices(facts)
    )
    known = dumps
    for frame in (ended, failed, steps.group_by("source").agg(stepped=pl.col("line_no").max())):
        known = known.join(frame, on="source", how="left", maintain_order="left")
    is_behind = (pl.col("stepped") <= pl.col("ended")) & (pl.col("ended") < pl.col("line_no"))
    is_evaluation = is_behind & ~(pl.col("failed") > pl.col("line_no")).fill_null(value=False)
    return known.filter(~is_evaluation.fill_null(value=False)).select(LINES.names())


def _last_planned(facts: Facts) -> pl.DataFrame:
    """LINES of steps that reach the number of them that their file plans."""
    planned = pl.col("value").cast(pl.Int64, strict=False)
    stated = facts.settings.filter(name="steps_planned").select("source", planned=planned)
    printed = facts.steps.lazy().select("source", planned="steps_planned").group_by("source").agg(pl.max("planned"))
    plans = pl.concat([stated, printed.collect()]).drop_nulls().group_by("source").agg(pl.col("planned").max())
    if plans.is_empty():
        return pl.DataFrame(schema=LINES)
    return pl.concat(
        part.join(plans, on="source").filter(pl.col("step") >= pl.col("planned")).select(LINES.names())
        for part in _slices(facts)
    )


def _without_other_ranks(lines: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """`lines` but for those of further ranks, which begin to print while the first one logs its first step.

    Nothing has failed or ended since, the next step is that one again, and the ranks began at about the same time.
    """
    if lines.is_empty():
        return lines
    begun = lines.with_columns(launch=pl.col("line_no"))

    def steps_of_launches(steps: pl.DataFrame) -> pl.DataFrame:
        own = steps.join(lines, on="source", how="semi", maintain_order="left")
        known = own.join_asof(begun, on="line_no", by="source", strategy="backward", check_sortedness=False)
        return known.group_by("source", "launch", maintain_order=True).agg(
            first=pl.col("step").first(), last=pl.col("step").max(), from_line=pl.col("line_no").first()
        )

    parts = pl.concat(map(steps_of_launches, _slices(facts)))
    parts = parts.group_by("source", "launch", maintain_order=True).agg(
        pl.col("first").first(), pl.col("last").max(), pl.col("from_line").first()
    )
    at = facts.events.filter(kind="launch").group_by("source", launch="line_no").agg(pl.col("ts").min())
    parts = parts.join(at, on=["source", "launch"], how="left", maintain_order="left")
    before = pl.col("last").shift(1).over("source"), pl.col("first").shift(1).over("source")
    is_together = (pl.col("ts").diff().over("source") < APART).fill_null(value=True)
    is_same = (pl.col("first") == before[0]) & (pl.col("first") == before[1]) & is_together
    is_other = ~pl.col("kind").is_in(["launch", jobs.KIND, endings.KIND, *symptoms.KINDS])
    failures = facts.events.filter(is_other).select(LINES.names()).sort(LINES.names()).with_columns(failed="line_no")
    of_ranks = (
        parts.with_columns(since=pl.col("from_line").shift(1).over("source"))
        .filter(is_same)
        .sort("source", "from_line")
        .join_asof(
            failures,
            left_on="from_line",
            right_on="line_no",
            by="source",
            strategy="backward",
            check_sortedness=False,
        )
        .filter((pl.col("failed") < pl.col("since")).fill_null(value=True))
    )
    return lines.join(of_ranks.select("source", line_no="launch"), on=LINES.names(), how="anti", maintain_order="left")


def _with_steps_before(rows: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """`rows` with `before`, the number of lines of the same file in front of each that log a step."""
    wanted = rows.select(LINES.names()).unique().sort(LINES.names())
    parts, last = [], None
    for steps in _slices(facts):
        lines = steps.drop_nulls("step").select(LINES.names())
        # Lines that repeat are neighbours, also over the end of a slice.
        lines = lines.filter(pl.any_horizontal(pl.all() != pl.all().shift(1)).fill_null(value=True))
        if lines.height and lines.row(0) == last:
            lines = lines[1:]
        last = lines.row(-1) if lines.height else last
        ahead = lines.join_asof(
            wanted.with_columns(ahead="line_no"),
            on="line_no",
            by="source",
            strategy="forward",
            check_sortedness=False,
        )
        parts.append(ahead.drop_nulls("ahead").group_by("source", "ahead").agg(pl.len().cast(pl.Int64)))
    counts = pl.concat(parts).group_by("source", "ahead").agg(pl.col("len").sum())
    between = wanted.join(
        counts, left_on=LINES.names(), right_on=["source", "ahead"], how="left", maintain_order="left"
    )
    before = between.with_columns(before=pl.col("len").fill_null(0).cum_sum().over("source")).drop("len")
    return rows.sort(LINES.names()).join(before, on=LINES.names(), how="left", maintain_order="left")


def _slices(facts: Facts) -> Iterator[pl.DataFrame]:
    """Steps in order, at least one slice: `source`, `line_no`, `step`."""
    steps = in_order(facts.steps["source", "line_no", "step"])
    yield from steps.iter_slices(SLICE_ROWS) if steps.height else [steps]
