"""Runs of which each metric is a file of its own: what DVCLive writes, and what TensorBoard's page hands out.

Formats: DVCLive's `plots/metrics/NAME.tsv` below its folder, with `params.yaml` beside (dvclive/live.py and
plots/metric.py: columns `timestamp`, where asked for, `step` and the metric's last name; before version 1
`dvclive/NAME.tsv`); the CSV of a chart of TensorBoard's, `run-RUN-tag-TAG.csv` with `Wall time,Step,Value` (scalars
plugin, /scalars?format=csv).
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from typing import Any

from sweepscope.pipeline.logs.sidecars.run_files import plain_yaml
from sweepscope.pipeline.logs.trackers.tracked_run import (
    LAST_SECOND,
    Row,
    TrackedRun,
    is_training_loss,
    is_wanted,
    settings_of,
)

_DVCLIVE = re.compile(
    r"^(?P<run>.*)/plots/metrics/(?P<name>.+)\.tsv$|"
    r"^(?P<own>(?:.*/)?dvclive)/(?:(?!plots/)(?:scalars/)?(?P<old>.+)\.tsv|(?P<params>params\.yaml))$"
)
_DOWNLOAD = re.compile(r"^(?P<run>(?:.*/)?run-.+)-tag-(?P<name>[^/]+)\.csv$")
_PARAMS = "params.yaml"
_METRIC = "metrics/"
_TIMES = ("timestamp", "wall time", "time")


def run_folder(path: str) -> str:
    """What names the run that a file tells of, as a path; "" for any other file.

    >>> run_folder("/s/tp2/dvclive/plots/metrics/train/loss.tsv"), run_folder("/s/run-tp2_train-tag-train_loss.csv")
    ('/s/tp2/dvclive', '/s/run-tp2_train')
    >>> run_folder("/s/dvclive/params.yaml"), run_folder("/s/params.yaml")
    ('/s/dvclive', '')
    """
    if found := _DVCLIVE.match(path) or _DOWNLOAD.match(path):
        named = found.groupdict()
        return named["run"] or named["own"]
    return ""


def part_of(path: str) -> str:
    """What a file of a run holds: `metrics/NAME` or `params.yaml`."""
    found = _DVCLIVE.match(path) or _DOWNLOAD.match(path)
    named = found.groupdict() if found else {}
    return _PARAMS if named.get("params") else f"{_METRIC}{named.get('name') or named.get('old')}"


def check(part: str, text: str) -> None:
    """Raises ValueError for a part that is damaged."""
    if part == _PARAMS:
        _params(text)
    else:
        _values(text)


def names_run(part: str) -> bool:
    """Whether a part is of one run only: a learning rate is that of many, a training's losses are not."""
    return is_training_loss(part.removeprefix(_METRIC))


def read(parts: Mapping[str, str], folder: str) -> TrackedRun | None:
    """The run of a folder; None for one whose metrics are all of other things, such as the machine's.

    Args:
        parts: the texts of its files, by `part_of`.
        folder: as `run_folder` has it; its name is the run's.

    Raises:
        ValueError: a file is damaged.
    """
    of_steps: dict[int, tuple[float | None, dict[str, float]]] = {}
    for part in sorted(parts):
        name = part.removeprefix(_METRIC)
        if part == _PARAMS or not is_wanted(name):
            continue
        for step, seconds, value in _values(parts[part]):
            before, scalars = of_steps.setdefault(step, (seconds, {}))
            of_steps[step] = (seconds if before is None else before, scalars)
            scalars[name] = value
    if not of_steps:
        return None
    rows = [Row(at, step, *of_steps[step]) for at, step in enumerate(sorted(of_steps), 1)]
    config = _params(parts[_PARAMS]) if _PARAMS in parts else {}
    name = folder.removesuffix("/dvclive").rpartition("/")[2].removeprefix("run-")
    return TrackedRun(rows, config, settings_of(config), name=name)


def _values(text: str) -> list[tuple[int, float | None, float]]:
    """Step, seconds since 1970 and value of each whole line. Raises ValueError for another table."""
    head = text.partition("\n")[0]
    lines = text[: text.rfind("\n") + 1].splitlines()  # the last one may be being written
    rows = csv.reader(lines, delimiter="\t" if "\t" in head else ",")
    header = [name.strip().lower() for name in next(rows, [])]
    if "step" not in header:
        raise ValueError("it has no column of steps")
    at = header.index("step")
    time = next((header.index(name) for name in _TIMES if name in header), None)
    others = [place for place in range(len(header)) if place not in (at, time)]
    if len(others) != 1:
        raise ValueError("it has not one column of values")
    return [
        (int(float(row[at])), _seconds(row[time]) if time is not None else None, float(row[others[0]] or math.nan))
        for row in rows
        if len(row) == len(header)
    ]


def _seconds(text: str) -> float | None:
    """A moment in seconds, of one in seconds or milliseconds."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value / 1e3 if value > LAST_SECOND else value


def _params(text: str) -> dict[str, Any]:
    """The parameters of a run by their dotted names. Raises ValueError for damaged YAML."""
    return {str(name): value for name, value in plain_yaml(text).items()}
