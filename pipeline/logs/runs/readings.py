"""Which readings of a run directory are of one run: its log, the logs of its folders, and files of steps.

Each launch in a log, and each file in which a trainer keeps its steps, is a reading. Names put them into one directory;
values decide. A reading whose losses agree with those of another is of the same run, also where the log counts the
micro-batches of the file's steps. Where no step is in both, the file of steps is that of the log's last launch, if it
goes on from its steps. Readings that contradict each other are runs of their own; but if one launch and one file end at
the same step, the file may hold averages of what the log prints.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import polars as pl

from sweepscope.pipeline.logs.runs.agreement import compare, compare_ratios, tolerances
from sweepscope.pipeline.logs.runs.compared_readings import Compared, by_pair

DECISIONS = pl.Schema(
    {
        "reading": pl.Int64,
        "target": pl.Int64,
        "by_order": pl.Boolean,
        "ratio": pl.Int64,
        "offset": pl.Int64,
        "is_doubtful": pl.Boolean,
        "differing": pl.Int64,
    }
)
"""One row per reading that is of the run of another, `target`, and for each of those. `by_order`: their values agree in
order, while their steps are numbered differently. `ratio`, `offset`: the target counts `ratio` micro-batches for each
step of the reading (agreement.RATIOS). `is_doubtful`: it has the steps of the only launch, and other losses for so many
of them (`differing`)."""

_COUNTED = ["batch", "ordinal"]
"""`step_basis` of numbers that are not those of steps."""

LATEST = "latest"
"""The launch of a log beside which older ones of its run were put aside, and come first whatever their names."""

_ATTEMPT = r"(?:^|/)attempt_[0-9]+$"
"""torchelastic's folder of the logs of one start of the workers (elastic/multiprocessing/api.py DefaultLogsSpecs)."""
_OLDER_US = 86_400_000_000
"""A file that was last written so long before a launch is not of it, whatever the time zone of the log."""


@dataclass
class _Unit:
    """Numbers of the readings of one unit, in order: launches of its own logs, other logs, and files of steps."""

    own: list[int] = field(default_factory=list)
    logs: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)


def numbered(readings: pl.DataFrame) -> pl.DataFrame:
    """`readings` with their number `reading`: in each unit the launches of its own logs come first, then other logs.

    Args:
        readings: `unit`, `job`, `launch`, `kind`, `path`, `attempt_in_source`.
    """
    ordered = readings.with_columns(
        _path=pl.Series([_in_numbers(path) for path in readings["path"]], dtype=pl.String)
    ).sort(
        "unit",
        ~_is_own(),
        pl.col("kind") != "log",
        pl.col("job").str.len_chars(),
        "job",
        pl.col("launch") == LATEST,
        "_path",
        "attempt_in_source",
        maintain_order=True,
    )
    ordered = ordered.drop("_path")
    return ordered.with_row_index("reading").cast({"reading": pl.Int64})


def decide(readings: pl.DataFrame, steps: pl.DataFrame, started: pl.DataFrame) -> pl.DataFrame:
    """DECISIONS rows.

    Args:
        readings: rows of `numbered`, with `run` (NULL without steps), `source` and `modified_at` too.
        steps: `run`, `step`, `step_basis`, `loss`.
        started: `source` and `started_at`, the first timestamp in it.
    """
    several = readings.filter((pl.len().over("unit") > 1) & (~_is_own()).any().over("unit"))
    if several.is_empty():
        return pl.DataFrame(schema=DECISIONS)
    several = several.join(started, on="source", how="left", maintain_order="left")
    of_several = several.drop_nulls("run").select("run", "reading", group="unit")
    losses = tolerances(steps.select("run", "step", "loss").join(of_several, on="run").drop_nulls("loss"))
    nth = losses.sort("reading", "step", maintain_order=True).with_columns(n=pl.int_range(pl.len()).over("reading"))
    stepped = steps.join(of_several, on="run")
    by_step, by_order = compare(losses, "step"), compare(nth, "n")
    compared = Compared(
        by_pair(by_step),
        by_pair(by_order),
        {(first, second): tuple(found) for first, second, *found in _by_ratio(several, losses, by_step).iter_rows()},
        _reach(stepped),
        set(stepped.filter(pl.col("step_basis").cast(pl.String).is_in(_COUNTED))["reading"]),
        dict(several.filter(pl.col("launch").str.contains(_ATTEMPT)).select("reading", "launch").iter_rows()),
    )
    reach = compared.reach
    facts = {row["reading"]: row for row in several.iter_rows(named=True)}

    def follows(reading: int, launch: int) -> bool:
        written, begun = facts[reading]["modified_at"], facts[launch]["started_at"]
        is_old = written and begun and (begun - written).total_seconds() * 1e6 > _OLDER_US
        return not is_old and _adjoin(reach.get(reading), reach.get(launch))

    units: dict[str, _Unit] = defaultdict(_Unit)
    for reading, unit, kind, is_own in several.select("reading", "unit", "kind", own=_is_own()).iter_rows():
        of_unit = units[unit]
        (of_unit.own if is_own else of_unit.logs if kind == "log" else of_unit.files).append(reading)
    rows = [row for unit in units.values() for row in _decide(unit, compared, reach, follows)]
    return pl.DataFrame(rows, schema=DECISIONS, orient="row")


def _decide(
    unit: _Unit, compared: Compared, stepped: Collection[int], follows: Callable[[int, int], bool]
) -> list[tuple[int, int, bool, int | None, int | None, bool, int]]:
    """Rows of DECISIONS for one unit. `stepped` are readings with steps."""
    targets, by_order, ratios = _by_values(unit, compared)
    logs = [log for log in unit.logs if log in stepped and log not in targets]
    own = [launch for launch in unit.own if launch not in targets]
    launches = [*own, *logs] if not logs or any(launch in stepped for launch in own) else logs
    # What a log without steps tells, a launcher's for example, is of the last launch.
    for reading in [*unit.own, *unit.logs]:
        if launches and reading not in stepped and reading not in launches:
            targets[reading] = launches[-1:]
    _by_place(unit, launches, targets, compared, follows)
    doubtful = _in_doubt(unit, launches, targets, compared)
    return [
        (reading, final, reading in by_order, *ratios.get((reading, final), (None, None)), False, 0)
        for reading in targets
        for final in dict.fromkeys(final for target in targets[reading] for final in targets.get(target, [target]))
    ] + [(file, launch, False, None, None, True, compared.differing(file, launch)) for file, launch in doubtful]


def _in_doubt(
    unit: _Unit, launches: Collection[int], targets: Mapping[int, list[int]], compared: Compared
) -> list[tuple[int, int]]:
    """The file that may be of the only launch although its losses differ, and that launch."""
    alone = [file for file in unit.files if file not in targets and file in compared.reach]
    stepped = [launch for launch in launches if launch in compared.reach]
    if len(alone) == 1 == len(stepped) and compared.contradict(alone[0], stepped[0]):
        return [(file, launch) for file in alone for launch in stepped if compared.end_alike(file, launch)]
    return []


def _by_values(
    unit: _Unit, compared: Compared
) -> tuple[dict[int, list[int]], set[int], dict[tuple[int, int], tuple[int, int]]]:
    """Targets of readings whose losses agree with theirs, those of them that agree in order alone, and the ratio and
    offset of those of which a target counts micro-batches."""
    targets: dict[int, list[int]] = {}
    by_order: set[int] = set()
    ratios: dict[tuple[int, int], tuple[int, int]] = {}
    logs: list[int] = []
    for log in unit.logs:
        if before := [other for other in logs if compared.are_copies(log, other)]:
            targets[log] = before[:1]
        else:
            logs.append(log)
    for own in unit.own:
        copies = [log for log in logs if log not in targets and compared.are_copies(own, log)]
        if len(copies) > 1:  # it has several launches, each of which has a log of its own
            targets[own] = copies
        targets |= {log: [own] for log in copies if len(copies) == 1}
    launches = [launch for launch in [*unit.own, *logs] if launch not in targets]
    for file in unit.files:
        known = [launch for launch in launches if compared.are_same(file, launch)]
        before = [other for other in unit.files if other < file and compared.are_same(file, other)]
        if known:
            targets[file] = known
        elif before:
            targets[file] = targets.get(before[0], before[:1])
        elif in_turn := [launch for launch in launches if compared.are_same_in_order(file, launch)]:
            targets[file] = in_turn[-1:]
            by_order.add(file)
        elif of_batches := {launch: found for launch in launches if (found := compared.ratio(file, launch))}:
            launch = max(of_batches)
            targets[file] = [launch]
            ratios[file, launch] = of_batches[launch]
    return targets, by_order, ratios


def _by_place(
    unit: _Unit,
    launches: Collection[int],
    targets: dict[int, list[int]],
    compared: Compared,
    follows: Callable[[int, int], bool],
) -> None:
    """Add targets of files of steps that no other reading has: the last launch that they go on from."""

    def with_joined(reading: int) -> list[int]:
        return [reading, *(other for other, joined in targets.items() if reading in joined)]

    by_launch = {launch: with_joined(launch) for launch in launches}
    waiting = [file for file in reversed(unit.files) if file not in targets]
    is_new = True
    while is_new:
        is_new = False
        for file in list(waiting):
            of_file = with_joined(file)
            fits = [
                launch
                for launch, readings in by_launch.items()
                if not any(compared.contradict(one, other) for one in of_file for other in readings)
                and any(follows(one, other) for one in of_file for other in readings)
            ]
            if fits:
                targets[file] = fits[-1:]
                by_launch[fits[-1]] += of_file
                waiting.remove(file)
                is_new = True


def _by_ratio(readings: pl.DataFrame, losses: pl.DataFrame, by_step: pl.DataFrame) -> pl.DataFrame:
    """RATIOS rows of files of steps and logs of one unit that do not agree by their steps."""
    units = readings.drop_nulls("run").select("unit", "reading", is_log=pl.col("kind") == "log")
    pairs = (
        units.filter(~pl.col("is_log"))
        .select("unit", first="reading")
        .join(units.filter("is_log").select("unit", second="reading"), on="unit")
    )
    agreeing = by_step.filter(2 * pl.col("agreeing") >= pl.col("common")).select(first="second", second="first")
    return compare_ratios(losses, pairs.join(agreeing, on=["first", "second"], how="anti"))


def _reach(steps: pl.DataFrame) -> dict[int, tuple[int, int, int]]:
    """First and last step of each reading, and the widest gap between two of its steps."""
    rows = steps.sort("reading", "step").group_by("reading", maintain_order=True)
    step = pl.col("step")
    found = rows.agg(step.first().alias("first"), step.last().alias("last"), gap=step.diff().max().fill_null(1))
    return {reading: (first, last, gap) for reading, first, last, gap in found.iter_rows()}


def _adjoin(one: tuple[int, int, int] | None, other: tuple[int, int, int] | None) -> bool:
    """Whether two stretches of steps overlap or meet; true where one is empty."""
    if one is None or other is None:
        return True
    gap = max(one[2], other[2])
    return one[0] <= other[1] + gap and other[0] <= one[1] + gap


def _is_own() -> pl.Expr:
    """Whether a reading is a launch of a log that lies in the unit's own folder, or in those of its ranks."""
    return (pl.col("kind") == "log") & (pl.col("launch") == "")


def _in_numbers(path: str) -> str:
    """A text that sorts `version_10` behind `version_2`."""
    return re.sub(r"\d+", lambda digits: digits[0].zfill(12), path)
