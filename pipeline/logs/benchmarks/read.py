"""What the log of a script that measures trainings says besides its steps: launches one by one, and results."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from sweepscope.pipeline.logs.benchmarks.headers import Printed, headers, stated_in_header
from sweepscope.pipeline.logs.benchmarks.summaries import (
    MEASURED_WORDS,
    Figure,
    is_of_training,
    names_step_time,
    summary,
    tells_of_other_work,
)
from sweepscope.pipeline.logs.facts import EVENT_FACTS, PEAK_FACTS, RUN_HEADER, SETTING_FACTS, Facts
from sweepscope.pipeline.logs.inference.settings import choose
from sweepscope.pipeline.logs.inference.stated import Stated, stated

_BASIS = "summary"
"""Word of vocab.STEP_TIME_BASIS."""
_MEMORY = "mem_peak_"
_TIMES = ("step_time_s", "tokens_per_s", "tokens_per_s_per_gpu")
_MOST_OTHERS = 20_000
"""Lines that are no steps: a log with more is no plain loop over launches."""
_END = 2_000
"""Last lines of such a log, in which its summary is looked for."""

Row = tuple[int, str]
Steps = Mapping[int, tuple[int, float | None]]


@dataclass(frozen=True)
class _Launch:
    """Lines of one launch that are no steps.

    Attributes:
        header: the line that announces it.
        setup: those as far as its first step, all of one without steps.
        behind: those behind its last step, all of one without steps.
        last_step, last_line: the largest number of a step, and its line; None and the header's without any.
        has_failed: whether one of its lines tells of a failure.
    """

    header: Row
    setup: Sequence[Row]
    behind: Sequence[Row]
    last_step: int | None
    last_line: int
    has_failed: bool


def read_benchmark(sample: pl.DataFrame, steps: pl.DataFrame, failed: Collection[int]) -> Facts | None:
    """Facts, but for steps, of a log that announces several launches, or whose times only a summary tells.

    None of other logs. Of several launches the settings are all that the log states. A summary counts as the end of a
    training in which nothing failed.

    Args:
        sample: `line_no`, `text` of all lines of the log, in order.
        steps: STEP_FACTS rows of it.
        failed: numbers of lines that tell of a failure.
    """
    rows = [(line_no, text) for line_no, text in sample.select("line_no", "text").iter_rows() if text.strip()]
    known = steps.drop_nulls("step").select("line_no", "step", "loss").sort("line_no", maintain_order=True)
    numbers = {line_no: (step, loss) for line_no, step, loss in known.iter_rows()}
    others = [row for row in rows if row[0] not in numbers]
    if len(others) > _MOST_OTHERS:
        return read_end(sample.tail(_END), steps, failed)
    speaking = sample.filter(pl.col("text").str.contains(MEASURED_WORDS) & ~pl.col("line_no").is_in(list(numbers)))
    measuring = {row[0] for row in speaking.select("line_no", "text").iter_rows() if summary([row])}
    begins = headers(rows, Printed(numbers, {*failed, *measuring}))
    if begins:
        return _of_launches(_launches(begins, others, numbers, failed), [row for row in others if row[0] < begins[0]])
    if not measuring:
        return None
    return _alone(others, failed=bool(failed)) if steps.is_empty() else _behind_steps(others, steps, failed)


def read_end(end: pl.DataFrame, steps: pl.DataFrame, failed: Collection[int]) -> Facts | None:
    """Facts of the summary in the last lines of a log too long to be read for headers; the arguments as above."""
    return None if steps.is_empty() else _behind_steps(end.select("line_no", "text").rows(), steps, failed)


def _launches(begins: Sequence[int], others: Sequence[Row], numbers: Steps, failed: Collection[int]) -> list[_Launch]:
    found = []
    lines, places = list(numbers), [line_no for line_no, _ in others]
    ends = [*begins[1:], max(*places, *lines) + 1]
    for begin, end in zip(begins, ends, strict=True):
        own = others[bisect_left(places, begin) : bisect_left(places, end)]
        stepped = lines[bisect_left(lines, begin) : bisect_left(lines, end)]
        first, last = (stepped[0], stepped[-1]) if stepped else (end, begin)
        setup = [row for row in own if row[0] < first]
        behind = [row for row in own if row[0] > last]
        last_step = max((numbers[line][0] for line in stepped), default=None)
        found.append(_Launch(own[0], setup, behind, last_step, last, any(begin <= line < end for line in failed)))
    return found


def _of_launches(launches: Sequence[_Launch], above: Sequence[Row]) -> Facts:
    """Facts of all launches; `above` are the lines in front of the first, whose settings all of them have."""
    common = _stated(above)
    settings = [(one.line_no, one.column, one.value) for one in _chosen(common)]
    counted = Counter(one.last_step for one in launches if one.last_step is not None)
    furthest = max(counted, default=0)
    parts = []
    for launch in launches:
        own = _of_setup(launch)
        columns = {one.column for one in own}
        chosen = _chosen([*own, *(one for one in common if one.column not in columns)])
        settings += [(one.line_no, one.column, one.value) for one in chosen if one.line_no >= launch.header[0]]
        events = [(launch.header[0], RUN_HEADER, launch.header[1])]
        if launch.last_step == furthest and counted[furthest] > 1:
            events.append(
                (launch.last_line, "epilogue", f"step {furthest}, the last of {counted[furthest]} runs of this log")
            )
        parts.append(Facts.only_events(_events(events)))
        parts.append(_of_figures(summary(launch.behind), is_end=not launch.has_failed))
    whole = Facts.concat(parts)
    return replace(whole, settings=pl.concat([_settings(settings), whole.settings]))


def _alone(rows: Sequence[Row], *, failed: bool) -> Facts | None:
    """Facts of the summary of a log without steps, if it is a training's."""
    figures = summary(rows)
    is_training = is_of_training(figures, {one.column for one in _stated(rows)}, [text for _, text in rows])
    return _of_figures(figures, is_end=not failed) if is_training else None


def _behind_steps(rows: Sequence[Row], steps: pl.DataFrame, failed: Collection[int]) -> Facts | None:
    """Facts of the summary behind the last of steps that tell no time, if it says how long one took."""
    if steps.select(pl.col(_TIMES).is_not_null().any()).row(0).count(True):
        return None
    last = max(steps["line_no"].to_list())
    behind = [row for row in rows if row[0] > last]
    figures = summary(behind)
    end = max((one.line_no for one in figures.values()), default=last)
    if not names_step_time(figures) or tells_of_other_work(text for line_no, text in behind if line_no <= end):
        return None
    return _of_figures(figures, is_end=not any(line_no > last for line_no in failed))


def _of_setup(launch: _Launch) -> list[Stated]:
    """What the header and the lines down to the first step state."""
    header = [one for one in stated_in_header(*launch.header) if one.column != "epochs"]
    return header + _stated(row for row in launch.setup if row != launch.header)


def _stated(rows: Iterable[Row]) -> list[Stated]:
    """What lines state, but for those of results and for epochs, which are no steps."""
    return [one for one in stated(row for row in rows if not summary([row])) if one.column != "epochs"]


def _chosen(found: Sequence[Stated]) -> list[Stated]:
    """The believed statement of each column, in the column's terms."""
    return [replace(one.sources[0], column=one.column, value=one.value) for one in choose(found) if one.is_used]


def _of_figures(figures: Mapping[str, Figure], *, is_end: bool) -> Facts:
    """Facts of a summary: peaks of memory, and the rest as figures that the run states."""
    peaks = [(one.line_no, column, float(one.value)) for column, one in figures.items() if column.startswith(_MEMORY)]
    stated_ones = [
        (one.line_no, column, repr(one.value)) for column, one in figures.items() if not column.startswith(_MEMORY)
    ]
    if "step_time_s" in figures:
        stated_ones.append((figures["step_time_s"].line_no, "step_time_basis", _BASIS))
    last = max(figures.values(), key=lambda one: one.line_no, default=None)
    events = [(last.line_no, "training_end", last.text)] if last and is_end else []
    return Facts(
        Facts.empty().steps,
        _settings(stated_ones),
        _frame(peaks, ("line_no", "name", "value"), PEAK_FACTS),
        _events(events),
    )


def _settings(rows: Sequence[tuple[int, str, str]]) -> pl.DataFrame:
    frame = _frame(rows, ("line_no", "name", "value"), SETTING_FACTS)
    return frame.with_columns(setting_source=pl.lit("log_line"))


def _events(rows: Sequence[tuple[int, str, str]]) -> pl.DataFrame:
    return _frame(rows, ("line_no", "kind", "text"), EVENT_FACTS)


def _frame(rows: Sequence[tuple[object, ...]], names: Sequence[str], schema: pl.Schema) -> pl.DataFrame:
    """Facts of source 0 from some of their columns."""
    return pl.DataFrame([{"source": 0, **dict(zip(names, row, strict=True))} for row in rows], schema=schema)
