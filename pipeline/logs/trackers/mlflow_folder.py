"""MLflow's file store: a folder for each run, `mlruns/EXPERIMENT/RUN/`, with a file for each metric.

Format: mlflow/store/tracking/file_store.py (`meta.yaml` of a run; `metrics/KEY` with lines of milliseconds, value and
step; `params/KEY` with the value). Slashes of a metric's name are folders.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from sweepscope.pipeline.io.yaml_text import safe_loader
from sweepscope.pipeline.logs.trackers.mlflow_store import config_of, ended, rows_of
from sweepscope.pipeline.logs.trackers.tracked_run import TrackedRun, is_wanted, settings_of

_PART = re.compile(r"^(?P<run>.*(?:^|/)[^/]+/[0-9a-f]{32})/(?P<part>meta\.yaml|(?:metrics|params)/.+)$")
META = "meta.yaml"
_STATUS = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}  # mlflow/protos/service.proto


def run_folder(path: str) -> str:
    """The folder of the run that a file tells of, by its path; "" for any other file.

    >>> run_folder("/s/mlruns/1/0123456789abcdef0123456789abcdef/metrics/train/loss")
    '/s/mlruns/1/0123456789abcdef0123456789abcdef'
    """
    found = _PART.match(path)
    return found["run"] if found else ""


def part_of(path: str) -> str:
    """What a file of a run holds: `meta.yaml`, `metrics/NAME` or `params/NAME`."""
    found = _PART.match(path)
    return found["part"] if found else ""


def check(part: str, text: str) -> None:
    """Raises ValueError for a part that is damaged."""
    if part == META:
        read_meta(text)
    elif part.startswith("metrics/"):
        read_metric(part, text)


def names_run(part: str) -> bool:
    """Whether a part is of one run only: thousands hold the same value of a metric or a parameter."""
    return part == META


def read_meta(text: str) -> dict[str, Any]:
    """What `meta.yaml` says. Raises ValueError for one that is damaged, or not of a run."""
    try:
        meta = safe_loader(text)(text).get_single_data()
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(meta, dict) or "status" not in meta or not {"run_id", "run_uuid"} & meta.keys():
        raise ValueError("not the meta.yaml of a run of MLflow: it has no run_id and status")
    return meta


def read_metric(name: str, text: str) -> list[tuple[str, int, int, float | None]]:
    """Name, step, milliseconds and value of each whole line. Raises ValueError for lines of another form."""
    found: list[tuple[str, int, int, float | None]] = []
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            continue  # it is being written
        moment, value, *step = line.split(maxsplit=2)
        number = float(value)
        found.append((name, int(step[0]) if step else 0, int(moment), None if math.isnan(number) else number))
    return found


def read(parts: Mapping[str, str], folder: str, *, wanted: Callable[[str], bool] = is_wanted) -> TrackedRun | None:
    """The run of a folder; None for one that MLflow has deleted.

    Args:
        parts: the texts of its files, by `part_of`.
        folder: its path, which names a run whose `meta.yaml` is lost.
        wanted: whether a metric of that name is read.

    Raises:
        ValueError: a file is damaged.
    """
    meta = read_meta(parts[META]) if META in parts else {}
    if meta.get("lifecycle_stage") == "deleted":
        return None
    metrics: list[tuple[str, int, int, float | None]] = []
    for part, text in parts.items():
        name = part.removeprefix("metrics/")
        if part.startswith("metrics/") and wanted(name):
            metrics += read_metric(name, text)
    metrics.sort(key=lambda one: one[1:3])
    config = config_of((part.removeprefix("params/"), text) for part, text in parts.items() if part[:7] == "params/")
    status = meta.get("status")
    name = meta.get("run_name") or folder.rpartition("/")[2]
    return TrackedRun(
        list(rows_of(metrics)),
        config,
        settings_of(config),
        ended=ended(_STATUS.get(status, status) if isinstance(status, int) else status),
        name=str(name),
    )
