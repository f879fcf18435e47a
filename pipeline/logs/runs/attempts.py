"""Which steps belong together: ranks, repeated prints, restarts and several runs in one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from sweepscope.pipeline.io.spill import SLICE_ROWS, gathered, is_large, release, spilled, stretches
from sweepscope.pipeline.logs.facts import STEP_FACTS, in_order
from sweepscope.pipeline.logs.runs.long_logs import excerpt
from sweepscope.pipeline.logs.runs.restarts import restarts
from sweepscope.pipeline.logs.runs.stepless import with_stepless

ATTEMPTS = pl.Schema({"source": pl.Int64, "attempt_in_source": pl.Int64, "start_line": pl.Int64, "run": pl.Int64})
"""One row per attempt; `run` is the number by which its steps name it, NULL where it has no steps."""

REPEATS = pl.Schema(
    {"source": pl.Int64, "line_no": pl.Int64, "step": pl.Int64, "count": pl.UInt32, "reason": pl.String}
)
"""One row per file and reason for which step lines were left out: the first such line, its step, and their number."""


_ROUNDING = 0.01


def one_rank(steps: pl.DataFrame) -> pl.DataFrame:
    """`steps` of one rank per launch, where several ranks print the same steps.

    `steps` are in order and have a column `launch`. The rank with most losses is kept, then the one with most lines,
    then the last: in a pipeline the first stages report without a loss. Of other ranks only steps remain that the kept
    one does not print, and outside of its lines: after a restart another rank may do the printing.
    """
    is_same_rank = pl.col("rank").eq_missing(pl.col("rank").shift(1)) | (pl.col("source").diff() != 0)
    if steps.select(is_same_rank.slice(1).all()).item():
        return steps
    part = ["source", "launch"]
    counts = steps.group_by(*part, "rank").agg(
        losses=pl.col("loss").count(), n=pl.len(), low=pl.col("line_no").min(), high=pl.col("line_no").max()
    )
    winners = (
        counts.sort("losses", "n", "rank", descending=True, nulls_last=True)
        .unique(part, keep="first", maintain_order=True)
        .select(*part, pl.col("rank").alias("kept_rank"), "low", "high")
    )
    if winners.height == counts.height:
        return steps
    marked = steps.join(winners, on=part, how="left", nulls_equal=True, maintain_order="left")
    is_kept = pl.col("rank").eq_missing(pl.col("kept_rank"))
    shown = marked.filter(is_kept).select(*part, "step").unique().with_columns(is_shown=pl.lit(value=True))
    is_extra = ~pl.col("line_no").is_between("low", "high") & pl.col("is_shown").is_null()
    return (
        marked.join(shown, on=[*part, "step"], how="left", nulls_equal=True, maintain_order="left")
        .filter(is_kept | is_extra)
        .select(steps.columns)
    )


def number_attempts(
    steps: pl.DataFrame, launches: pl.DataFrame, ends: pl.DataFrame, sources: pl.Series, headings: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """`steps` with `run`, the number of their attempt (one row per attempt and step), ATTEMPTS and REPEATS rows.

    A new attempt begins at a launch after steps were logged, behind an end where the steps do not go on, and where
    their order shows a restart (`restarts`). A launch without any step is an attempt too: it started and stopped.

    Args:
        steps: parsed STEP_FACTS rows.
        launches: lines with which a launch begins (`launches.LINES`).
        ends: lines with which one has ended.
        sources: every source that is a run, so that one without steps still has attempt 1.
        headings: of launches, each of which is an attempt (`stepless.headings`).
    """
    # Redraws of a progress bar share a line number, so rows of one line keep the order in which they came.
    steps = in_order(steps)
    launches = launches.select("source", "line_no").unique().sort("source", "line_no")
    lines = {"launches": launches, "ends": ends, "headings": headings}
    return _log_by_log(steps, sources, lines) if is_large(steps) else _numbered(steps, sources, **lines)


def _log_by_log(
    steps: pl.DataFrame, sources: pl.Series, lines: Mapping[str, pl.DataFrame]
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """As `_numbered`, for many steps: log by log, and from an excerpt where that shows as much (`long_logs`)."""
    logs, attempts, repeats = [], [], []
    of_logs = stretches(steps["source"])
    begin = runs = 0
    for length, source in of_logs.iter_rows():
        rows = steps[begin : begin + length]
        own = {name: frame.filter(source=source) for name, frame in lines.items()}
        rows, begins, of_source, again = _of_log(rows, pl.Series("source", [source], sources.dtype), own)
        logs.append((rows, begins, runs))
        attempts.append(of_source.with_columns(pl.col("run") + runs))
        repeats.append(again)
        begin, runs = begin + length, runs + (rows["run"].n_unique() if begins is None else len(begins) + 1)
        release()
    without = sources.filter(~sources.is_in(of_logs["value"].implode()))
    of_others = {name: frame.filter(pl.col("source").is_in(without.implode())) for name, frame in lines.items()}
    nothing, of_source, _ = _numbered(steps.clear(), without, **of_others)
    return (
        gathered(lambda: _with_runs(logs, nothing.columns), nothing.schema, steps.height),
        pl.concat([*attempts, of_source]).sort("source", "attempt_in_source"),
        pl.concat(repeats),
    )


def _of_log(
    rows: pl.DataFrame, source: pl.Series, lines: Mapping[str, pl.DataFrame]
) -> tuple[pl.DataFrame, np.ndarray | None, pl.DataFrame, pl.DataFrame]:
    """Steps of one log, the numbers of those with which its runs begin but for the first, ATTEMPTS and REPEATS rows.

    Without these numbers, the steps have a `run`.
    """
    if some := excerpt(rows, lines.values()):
        numbered, attempts, repeats = _numbered(some.rows, source, **lines)
        begins = some.begins(numbered) if repeats.is_empty() else None
        if begins is not None:
            return rows, begins, attempts, repeats
    numbered, attempts, repeats = _numbered(rows, source, **lines)
    return spilled(numbered), None, attempts, repeats


def _with_runs(
    logs: Iterable[tuple[pl.DataFrame, np.ndarray | None, int]], columns: Sequence[str]
) -> Iterator[pl.DataFrame]:
    """Slices of logs with `begins` (`_of_log`), whose runs are numbered behind those before."""
    for rows, begins, before in logs:
        for at, part in enumerate(rows.iter_slices(SLICE_ROWS)):
            run = pl.col("run") if begins is None else pl.lit(_runs(begins, at * SLICE_ROWS, part.height))
            yield part.with_columns(run=run + before).select(columns)


def _runs(begins: np.ndarray, first: int, count: int) -> pl.Series:
    """Numbers of the runs of so many rows."""
    return pl.Series(np.searchsorted(begins, np.arange(first, first + count), side="right").astype(np.int64) + 1)


def _numbered(
    steps: pl.DataFrame, sources: pl.Series, *, launches: pl.DataFrame, ends: pl.DataFrame, headings: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """`number_attempts` of steps and launches in order."""
    marked = steps.join_asof(
        launches.with_columns(launch=pl.col("line_no")),
        on="line_no",
        by="source",
        strategy="backward",
        check_sortedness=False,
    )
    marked = one_rank(marked)
    is_first = (pl.col("source").diff() != 0).fill_null(value=True)
    is_launched = is_first | (pl.col("launch").is_not_null() & pl.col("launch").ne_missing(pl.col("launch").shift(1)))
    marked = _parted(marked.with_columns(launch=is_launched.cast(pl.Int64).cum_sum()), ends)
    found = restarts(marked)
    others = marked.filter(found.is_other)
    marked = marked.with_columns(
        pl.col("source").set_sorted(),
        begins=pl.Series(found.begins),
        offset=pl.Series(found.offset),
        previous_line=pl.when(~is_first).then(pl.col("line_no").shift(1)),
    )
    marked = marked.filter(~found.is_other) if others.height else marked  # a filter copies all columns
    is_new = pl.col("begins") | (pl.col("launch").diff() != 0).fill_null(value=True)
    marked = _in_epochs(marked).with_columns(is_new=is_new, run=is_new.cast(pl.Int64).cum_sum().set_sorted())
    starts = _starts(marked, launches)
    stepless = (
        sources.to_frame("source")
        .join(starts, on="source", how="anti")
        .with_columns(attempt_in_source=pl.lit(1, pl.Int64), start_line=pl.lit(0, pl.Int64), run=pl.lit(None, pl.Int64))
    )
    attempts = pl.concat([starts, stepless.select(ATTEMPTS.names()), _trailing(marked, starts, launches)])
    if headings.height:
        firsts = marked.group_by("run").agg(pl.col("source").first(), pl.col("line_no").min())
        attempts = with_stepless(attempts, firsts, headings.filter(pl.col("source").is_in(sources.implode())))
    marked = _rising(marked)
    return (
        _one_row_per_step(marked),
        attempts.sort("source", "attempt_in_source"),
        pl.concat([_repeats(marked), _counted(others, "the line has another counter than the training's steps")]),
    )


def _parted(marked: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """`marked` with a new `launch` where a step is not above all of those in front of an end."""
    ended = marked.select("source", "line_no", "step", "launch").join(ends, on="source", how="semi")
    if ended.is_empty():
        return marked
    at = ended.join_asof(
        ends.with_columns(end="line_no"), on="line_no", by="source", strategy="backward", check_sortedness=False
    )
    peak, line = (pl.col(name).shift(1).over("launch") for name in ("peak", "line_no"))
    is_new = (pl.col("end") > line) & (pl.col("step") <= peak)
    begun = at.with_columns(peak=pl.col("step").cum_max().over("launch")).filter(is_new).select("source", "line_no")
    is_begun = pl.struct("source", "line_no").is_in(begun.to_struct().implode()) & (pl.col("line_no").diff() != 0)
    return marked.with_columns(pl.col("launch") + is_begun.fill_null(value=False).cast(pl.Int64).cum_sum())


def _in_epochs(marked: pl.DataFrame) -> pl.DataFrame:
    """`marked` with steps that go on over epochs where each counts anew; the planned number is then an epoch's."""
    if not marked.select((pl.col("offset") > 0).any()).item():
        return marked
    is_epoch = (pl.col("offset") > 0).any().over("launch")
    return marked.with_columns(
        step=pl.col("step") + pl.col("offset"), steps_planned=pl.when(~is_epoch).then("steps_planned")
    )


def _rising(marked: pl.DataFrame) -> pl.DataFrame:
    """`marked` in the order of the steps of each run: lines of several processes are out of order."""
    is_back = ((pl.col("step").diff() < 0) & (pl.col("run").diff() == 0)).any()
    return marked.sort("run", "step", maintain_order=True) if marked.select(is_back).item() else marked


def _starts(marked: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """ATTEMPTS rows of attempts with steps; they start at their launch, if there is one after the attempt before."""
    first = marked.filter("is_new").with_columns(attempt_in_source=pl.int_range(1, pl.len() + 1).over("source"))
    launch = launches.with_columns(previous_line=pl.col("line_no") - 1).select(
        "source", "previous_line", pl.col("line_no").alias("next_launch")
    )
    first = first.sort("source", "previous_line").join_asof(
        launch.sort("source", "previous_line"),
        on="previous_line",
        by="source",
        strategy="forward",
        check_sortedness=False,
    )
    start = (
        pl.when(pl.col("attempt_in_source") == 1)
        .then(0)
        .otherwise(pl.min_horizontal("line_no", pl.coalesce("next_launch", "line_no")))
    )
    return first.select("source", "attempt_in_source", start.cast(pl.Int64).alias("start_line"), "run")


def _trailing(marked: pl.DataFrame, starts: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """ATTEMPTS rows of launches after a file's last step."""
    last = marked.group_by("source").agg(last_line=pl.col("line_no").max())
    behind = launches.join(last, on="source").filter(pl.col("line_no") > pl.col("last_line"))
    number = starts.group_by("source").agg(attempt_in_source=pl.col("attempt_in_source").max() + 1)
    first = behind.group_by("source").agg(start_line=pl.col("line_no").min(), run=pl.lit(None, pl.Int64))
    return first.join(number, on="source").select(ATTEMPTS.names())


def _repeats(marked: pl.DataFrame) -> pl.DataFrame:
    """REPEATS rows: lines with another loss for a step that has one; loggers that round differently agree."""
    is_again = (pl.col("run").diff() == 0) & (pl.col("step").diff() == 0)
    if not marked.select(is_again.any()).item():
        return pl.DataFrame(schema=REPEATS)
    key = ["run", "step"]
    first_loss, first_line = (pl.col(name).first().over(key) for name in ("loss", "line_no"))
    differs = (pl.col("loss") - first_loss).abs() > _ROUNDING * first_loss.abs()
    logged = marked.drop_nulls("loss").filter(differs & (pl.col("line_no") != first_line))
    return _counted(logged, "the step was logged before; its first values were kept")


def _counted(rows: pl.DataFrame, reason: str) -> pl.DataFrame:
    """REPEATS rows of step lines that were left out."""
    first = rows.sort("line_no").group_by("source", maintain_order=True)
    counted = first.agg(pl.col("line_no").first(), pl.col("step").first(), count=pl.len(), reason=pl.lit(reason))
    return counted.select(REPEATS.names()).cast(REPEATS)


def _one_row_per_step(marked: pl.DataFrame) -> pl.DataFrame:
    """The first value of each column for a step that is printed twice (by two loggers or ranks, by a redrawn bar).

    Steps of an attempt rise, so repeated ones are adjacent.
    """
    key = ["run", "step"]
    values = [name for name in STEP_FACTS.names() if name not in key]
    if marked.select(pl.all_horizontal(pl.col(key).diff() == 0).any()).item():
        marked = marked.group_by(key, maintain_order=True).agg(pl.col(values).drop_nulls().first())
    return marked.select(*key, *values)
