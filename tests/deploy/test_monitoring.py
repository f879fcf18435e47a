"""The Grafana dashboard and the scrape job ask for metrics that there are."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from sweepscope.pipeline.operations.exposition import exposition
from sweepscope.pipeline.operations.heartbeat import Heartbeat
from sweepscope.pipeline.operations.measures import Contents, Measures
from sweepscope.pipeline.store.published import StoreInfo
from tests.paths import ROOT

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def exported() -> dict[str, set[str]]:
    """Every metric, with its labels."""
    info = StoreInfo(1, 1, NOW.replace(tzinfo=None), "0.1", "f", 3)
    contents = Contents(info, {"rejects": 1}, {"completed": 1}, {"parsed": 1}, 0, 1.0)
    found = Measures(NOW, "published", "alive", contents, 1, 1, 0.5, Heartbeat(NOW, 0, 0))
    families = text_string_to_metric_families(exposition(found))
    return {family.name: {label for sample in family.samples for label in sample.labels} for family in families}


def test_every_panel_asks_for_metrics_and_labels_that_there_are(exported: dict[str, set[str]]) -> None:
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "sweepscope.json").read_text())
    targets = [(panel["title"], target) for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(targets) >= 12
    for title, target in targets:
        names = set(re.findall(r"sweepscope_\w+", target["expr"]))
        assert names, title
        assert names <= set(exported), title
        shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"])) - {"instance"}
        assert shown <= set.union(*(exported[name] for name in names)), title
        assert target["expr"].count("(") == target["expr"].count(")"), title
    shown_metrics = {name for _, target in targets for name in re.findall(r"sweepscope_\w+", target["expr"])}
    left_out = {
        "sweepscope_secrets_hidden",
        "sweepscope_newest_input_timestamp_seconds",
        "sweepscope_watcher_last_tick_timestamp_seconds",
    }
    assert shown_metrics == set(exported) - left_out


def test_panels_do_not_overlap() -> None:
    panels = json.loads((ROOT / "deploy" / "grafana" / "sweepscope.json").read_text())["panels"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert max(x for x, _ in cells) < 24
        assert not taken & cells, panel["title"]
        taken |= cells


def test_the_scrape_job_asks_where_the_dashboard_answers() -> None:
    parsed = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    (job,) = parsed["scrape_configs"]
    assert (job["metrics_path"], job["static_configs"]) == ("/metrics", [{"targets": ["127.0.0.1:8501"]}])
