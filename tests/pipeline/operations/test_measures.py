"""What monitoring sees of a home: its state, counts, and how long things took, in Prometheus' own reading."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sweepscope.pipeline.operations.exposition import exposition, health
from sweepscope.pipeline.operations.heartbeat import beat, last_beat
from sweepscope.pipeline.operations.measures import Contents, Measures, measure
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publications import KEPT, Publication, publications, record
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import StoreInfo
from tests.pipeline.store.lake_rows import accelerators, together, unit

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


def samples(measures: Measures) -> dict[str, float]:
    """Sample to value as Prometheus reads them; labels behind the name."""
    found = {}
    for family in text_string_to_metric_families(exposition(measures)):
        assert family.documentation
        assert family.type == "gauge"
        for sample in family.samples:
            found[" ".join([sample.name.removeprefix("sweepscope_"), *sample.labels.values()])] = sample.value
    return found


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(str(tmp_path / "home"))


def test_a_published_home_tells_counts_and_times(home: Home) -> None:
    lost = unit("b", status="oom")
    tables = together([unit("a"), lost, accelerators("H100")])
    written = (datetime.now(UTC) - timedelta(seconds=40)).timestamp()
    files = tables["files"].with_columns(mtime=pl.lit(written))
    Lake(home).commit({**tables, "files": files})
    done = publish(home)
    beat(home, files_waiting=7, runs_unfinished=2)
    found = measure(home)
    assert health(found) == {"status": "ok", "store": "published", "watcher": "alive"}
    values = samples(found)
    assert (values["runs completed"], values["runs oom"], values["rows runs"]) == (1, 1, 2)
    assert (values["files parsed"], values["rejects"], values["secrets_hidden"]) == (4, 2, 0)
    assert (values["store_version"], values["store_release"], values["lake_release"]) == (1, 1, 1)
    assert (values["files_waiting"], values["ingest_runs_unfinished"], values["watcher_up"]) == (7, 2, 1)
    assert values["publish_seconds"] == done.seconds > 0
    assert 40 <= values["ingest_lag_seconds"] <= 40 + done.seconds + 5
    assert values["store_bytes"] == done.path.stat().st_size
    assert values["newest_input_timestamp_seconds"] == pytest.approx(written)


def test_what_is_unknown_has_no_sample(home: Home) -> None:
    values = samples(measure(home))
    assert values == {"healthy": 1, "watcher_up": 0}
    assert health(measure(home)) == {"status": "ok", "store": "empty", "watcher": "none"}


def test_a_damaged_store_is_unhealthy(home: Home) -> None:
    Lake(home).commit(together([unit("a"), accelerators("H100")]))
    path = publish(home).path
    path.write_bytes(b"no database")
    assert health(measure(home))["status"] == "unhealthy"
    path.unlink()
    assert health(measure(home))["store"] == "damaged"
    assert samples(measure(home))["healthy"] == 0


def test_a_watcher_without_a_recent_tick_is_late_and_the_pages_are_healthy_all_the_same(home: Home) -> None:
    beat(home, files_waiting=0, runs_unfinished=0)
    found = measure(home, now=datetime.now(UTC) + timedelta(seconds=301))
    assert (found.watcher, found.is_healthy) == ("late", True)
    home.heartbeat.write_text("{}")
    assert last_beat(home) is None


def test_no_label_breaks_the_format() -> None:
    info = StoreInfo(1, 1, NOW.replace(tzinfo=None), "0.1", "f", 3)
    odd = 'a "b"\\ {c}\nd'
    found = Measures(NOW, "published", "none", Contents(info, {odd: 3}, {}, {}, 0, None))
    assert samples(found)[f"rows {odd}"] == 3


def test_publications_are_kept_in_number_and_a_damaged_record_stops_nothing(home: Home) -> None:
    for number in range(KEPT + 3):
        record(home, Publication(number, number, NOW, 0.5))
    kept = publications(home)
    assert (len(kept), kept[-1].version, kept[0].version) == (KEPT, KEPT + 2, 3)
    home.publications.write_text("[{}]")
    assert publications(home) == []
    Lake(home).commit(together([unit("a"), accelerators("H100")]))
    assert publish(home).is_new
    assert [one.version for one in publications(home)] == [1]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_sign_of_life_that_cannot_be_written_stops_nothing(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    home.dagster.mkdir()
    home.dagster.chmod(0o500)
    beat(home, files_waiting=0, runs_unfinished=0)
    assert "heartbeat_not_written" in caplog.text
