"""Exports that Aim's own API made: every run, parameter and value as that API gives them, and runs of them."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

from sweepscope.pipeline.ingest.batch import parse_batch, validate_batch
from sweepscope.pipeline.ingest.discover import discover
from sweepscope.pipeline.io.files import list_files
from sweepscope.pipeline.logs.trackers import exports
from sweepscope.pipeline.logs.trackers.tracked_run import is_wanted
from tests.pipeline.ingest_in_memory import LATER

RECORDED = sorted((Path(__file__).parents[3] / "trackers" / "aim").glob("*.csv.gz"))


def text_of(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def expected(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.with_name(path.name.replace(".csv.gz", ".json")).read_text())
    return found


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


def plain(value: float) -> float | str:
    """NaN as something that equals itself."""
    return "nan" if math.isnan(value) else value


def test_there_are_five_files() -> None:
    assert len(RECORDED) >= 5


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_an_export_is_read_as_aims_api_has_it(path: Path) -> None:
    assert exports.is_export(text_of(path))
    runs, own = {run.name: run for run in exports.read_csv(text_of(path), "")}, expected(path)
    assert set(runs) == {run["hash"] for run in own}
    for truth in own:
        run = runs[truth["hash"]]
        assert {name: str(value) for name, value in run.config.items()} == {
            name: str(value) for name, value in flat(truth["hparams"]).items()
        }
        wanted: dict[int, dict[str, float | str]] = {}
        for metric in truth["metrics"]:
            name = "/".join(filter(None, (metric["context"].get("subset"), metric["name"])))
            for step, value in zip(metric["steps"], metric["values"], strict=True):
                if is_wanted(name):
                    wanted.setdefault(step, {})[name] = plain(value)
        found = {row.step: {name: plain(value) for name, value in row.scalars.items()} for row in run.rows}
        assert found == wanted


def test_a_sweep_is_runs_with_their_layouts(tmp_path: Path) -> None:
    (path,) = (path for path in RECORDED if path.name.startswith("sweep"))
    (tmp_path / "aim_metrics.csv").write_text(text_of(path))
    tables = validate_batch(parse_batch(discover(list_files(str(tmp_path)), is_simulated=lambda _: False), now=LATER))
    runs = tables["runs"].sort("tp")
    assert runs.select("tp", "dp", "mbs", "seq_len", "steps_logged", "step_time_s").rows() == [
        (2, 4, 2, 4096, 12, 0.52),
        (4, 2, 2, 4096, 12, 0.54),
        (8, 1, 2, 4096, 12, 0.58),
    ]
    assert tables["files"].select("kind", "status").rows() == [("tracker", "parsed")]
