"""The store as a dataset: the rows of every table, one origin alone, and a card whose configurations name the files."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import yaml

import sweepscope as ss
from sweepscope.pipeline.store.dataset import write_dataset
from sweepscope.pipeline.store.published import connect, current
from sweepscope.schemas.registry import ALL
from tests.dashboard.app_pages.grid_home import make_home, run, small_sweep

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [*small_sweep(), run("p", origin="published")]
    return make_home(tmp_path_factory.mktemp("dataset") / "home", rows)


def written(home: Path, folder: Path, origin: str | None = None) -> dict[str, int]:
    with connect(current(home)) as connection:
        return write_dataset(connection, folder, origin=origin)


def test_every_table_with_rows_is_a_file_of_them(home: Path, tmp_path: Path) -> None:
    rows = written(home, tmp_path)
    store = ss.open(home)
    assert {path.stem for path in (tmp_path / "data").iterdir()} == set(rows)
    assert {"runs", "best_configs", "accelerators"} <= set(rows)
    for name, count in rows.items():
        assert pl.read_parquet(tmp_path / "data" / f"{name}.parquet").height == count
        assert store.sql(f"SELECT count(*) AS n FROM {name}")["n"].item() == count


def test_the_cards_configurations_name_the_files(home: Path, tmp_path: Path) -> None:
    rows = written(home, tmp_path)
    _, head, text = (tmp_path / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    configs = yaml.safe_load(head)["configs"]
    assert {config["config_name"] for config in configs} == set(rows)
    assert all((tmp_path / config["data_files"]).is_file() for config in configs)
    assert [config["config_name"] for config in configs if config.get("default")] == ["runs"]
    assert yaml.safe_load(head)["size_categories"] == ["n<1K"]
    assert all(f"## {name}\n" in text and ALL[name].description in text for name in rows)


def test_one_origin_brings_no_rows_of_others(home: Path, tmp_path: Path) -> None:
    written(home, tmp_path, "measured")
    for path in (tmp_path / "data").iterdir():
        frame = pl.read_parquet(path)
        if "run_id" in frame.columns:
            assert "p" not in frame["run_id"].to_list(), path.stem
    assert pl.read_parquet(tmp_path / "data" / "runs.parquet").height == len(small_sweep())
