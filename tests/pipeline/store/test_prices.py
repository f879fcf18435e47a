"""Prices of accelerators, and what runs cost at them and in energy; every figure is worked out by hand."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.store import prices
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.published import current
from tests.dashboard.store_rows import Row, run_row, write_real_store
from tests.pipeline.store.lake_rows import unit

START = datetime(2026, 11, 20, 22, 41)


def costs(tmp_path: Path, **rows: list[Row]) -> dict[str, Row]:
    path = write_real_store(tmp_path / "store.duckdb", **rows)
    with duckdb.connect(str(path), read_only=True) as connection:
        return {row["run_id"]: row for row in connection.sql("SELECT * FROM run_costs").pl().to_dicts()}


def test_a_price_is_set_changed_published_and_removed(published: Home) -> None:
    prices.set_prices(published, {"H100": 2.5})
    prices.set_prices(published, {"H100": 3.0})
    assert prices.stored(published) == {"H100": 3.0}
    with duckdb.connect(str(current(published.path)), read_only=True) as connection:
        found = connection.sql("SELECT run_id, usd_per_m_tokens FROM run_costs ORDER BY ALL").fetchall()
    assert found == [(run, pytest.approx(3.0 / 3600 / 9000 * 1e6)) for run in "ab"]
    Lake(published).commit(unit("a", steps=5, batch_id="b2"))
    assert prices.stored(published) == {"H100": 3.0}
    assert prices.remove(published, "H100")
    assert not prices.remove(published, "H100")
    assert prices.stored(published) == {}


def test_the_same_price_again_is_no_new_version(published: Home) -> None:
    prices.set_prices(published, {"H100": 2.5})
    before = current(published.path)
    prices.set_prices(published, {"H100": 2.5})
    assert current(published.path) == before


def test_accelerators_go_by_any_of_their_spellings(shown: Home) -> None:
    assert prices.named(shown, "H100") == "H100"
    with pytest.raises(UsageError, match="no accelerator of this store"):
        prices.named(shown, "abacus")


@pytest.mark.parametrize("text", ["free", "", "-1", "0", "nan", "inf", "1e9"])
def test_what_is_no_price(text: str) -> None:
    with pytest.raises(UsageError):
        prices.checked_price(text)


def test_dollars_of_runs(tmp_path: Path) -> None:
    rows = {
        "prices": [{"accelerator": "MI300X", "usd_per_gpu_hour": 2.0}],
        "runs": [
            run_row("a", gpu_hours=10.0, tokens_per_s_per_gpu=5000.0),
            run_row("dead", status="crash", gpu_hours=None, tokens_per_s_per_gpu=None, started_at=None, ended_at=None),
            run_row("other", accelerator="H100-SXM-80GB"),
        ],
    }
    found = costs(tmp_path, **rows)
    assert set(found) == {"a", "dead"}
    assert found["a"]["run_usd"] == pytest.approx(20.0)
    assert found["a"]["usd_per_m_tokens"] == pytest.approx(2.0 / 3600 / 5000 * 1e6)
    assert (found["dead"]["run_usd"], found["dead"]["usd_per_m_tokens"]) == (None, None)


def test_energy_from_sampled_power(tmp_path: Path) -> None:
    """Two of four GPUs were sampled: 500 W while they computed, 100 W in one of five samples."""
    run = run_row("a", num_gpus=4, gpu_hours=2.0, tokens_per_s_per_gpu=1000.0, ended_at=START + timedelta(minutes=30))
    sample = {"source_path": "/logs/a/smi.csv", "run_dir": "/logs/a"}
    samples = [
        {
            **sample,
            "line_no": 2 + 5 * gpu + minute,
            "gpu_index": gpu,
            "ts": START + timedelta(minutes=minute),
            "power_w": 500.0 if minute < 4 else 100.0,
            "gpu_utilisation": 0.9 if minute < 4 else 0.0,
        }
        for gpu in range(2)
        for minute in range(5)
    ]
    row = costs(tmp_path, runs=[run], gpu_samples=samples)["a"]
    assert (row["gpus_sampled"], row["energy_basis"]) == (2, "scaled")
    assert (row["power_mean_w"], row["power_busy_w"]) == (pytest.approx(420.0), pytest.approx(500.0))
    assert row["energy_kwh"] == pytest.approx(420 * 4 * 0.5 / 1000)
    assert row["tokens_per_joule"] == pytest.approx(2.0)
    assert row["kwh_per_m_tokens"] == pytest.approx(1e6 / 2.0 / 3.6e6)
