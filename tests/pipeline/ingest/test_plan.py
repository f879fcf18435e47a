"""One ingest as plain functions: what is found, what needs reading, how it is cut, what is kept and what rejected."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import Tables, faulty_rows, merge_tables, parse_batch, validate_batch
from sweepscope.schemas.registry import TABLES
from sweepscope.schemas.thresholds import STALE_AFTER
from tests.picotron_runs import OOM_TAIL, picotron_run

NOW = datetime(2035, 1, 1)
NO_RUNS = pl.DataFrame(schema={"source_path": pl.String(), "status": pl.String(), "sweep": pl.String()})


def parsed(*paths: Path) -> Tables:
    return validate_batch(parse_batch(plan.find([str(path) for path in paths]), now=NOW))


class TestFind:
    def test_no_paths_is_wrong_usage(self) -> None:
        with pytest.raises(UsageError, match="Nothing to ingest"):
            plan.find([])

    def test_a_missing_path_is_wrong_usage(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="No such file"):
            plan.find([str(tmp_path), str(tmp_path / "nowhere")])

    def test_an_empty_directory_is_wrong_usage(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=f"No files at {tmp_path}"):
            plan.find([str(tmp_path)])

    def test_a_watcher_waits_for_what_is_not_there_yet(self, tmp_path: Path) -> None:
        run, later, empty = picotron_run(tmp_path / "sweep"), tmp_path / "later", tmp_path / "empty"
        empty.mkdir()
        paths = [str(run), str(later), str(empty), str(later / "train.log"), "memory://nowhere/runs"]
        assert plan.awaited(paths) == paths[1:]
        assert plan.find(paths, are_watched=True).equals(plan.find([str(run)]))
        assert plan.find(paths[1:], are_watched=True).is_empty()
        picotron_run(later)
        assert plan.awaited(paths) == paths[2:]

    def test_a_watcher_waits_for_nothing_that_cannot_be_read(self) -> None:
        for wrong in ("", "/dev/null", "https://user:secret@example.org/runs"):
            with pytest.raises(UsageError):
                plan.awaited([wrong])

    def test_overlapping_paths_are_one_listing(self, tmp_path: Path) -> None:
        run = picotron_run(tmp_path)
        whole = plan.find([str(tmp_path)])
        assert plan.find([str(run / "log_1001.out"), str(tmp_path), str(run)]).equals(whole)
        assert whole["unit"].unique().to_list() == [str(run)]

    def test_a_file_that_is_named_is_read_whatever_its_name(self, tmp_path: Path) -> None:
        (tmp_path / "stdout").write_text((picotron_run(tmp_path / "x") / "log_1001.out").read_text())
        assert parsed(tmp_path / "stdout")["runs"]["last_step"].to_list() == [6]


class TestPlan:
    def found(self, tmp_path: Path) -> pl.DataFrame:
        picotron_run(tmp_path / "sweep", dp=2)
        picotron_run(tmp_path / "sweep", dp=4)
        return plan.find([str(tmp_path)])

    def test_what_was_read_is_not_read_again(self, tmp_path: Path) -> None:
        found = self.found(tmp_path)
        tables = validate_batch(parse_batch(found, now=NOW))
        assert plan.plan(found, tables["files"], tables["runs"], now=NOW).is_empty()
        assert plan.plan(found, TABLES["files"].empty(), NO_RUNS, now=NOW).equals(found)

    def test_a_run_that_was_running_is_read_again_once_it_is_stale(self, tmp_path: Path) -> None:
        found = self.found(tmp_path)
        tables = validate_batch(parse_batch(found, now=NOW))
        first = found["unit"].unique().sort()[0]
        running = tables["runs"].filter(run_dir=first).with_columns(status=pl.lit("running"))
        newest = datetime.fromtimestamp(found["mtime"].max(), UTC).replace(tzinfo=None)  # type: ignore[arg-type]
        soon, later = newest + STALE_AFTER / 2, newest + STALE_AFTER + timedelta(seconds=2)
        assert plan.plan(found, tables["files"], running, now=soon).is_empty()
        again = plan.plan(found, tables["files"], running, now=later)
        assert again["unit"].unique().to_list() == [first]
        assert again.height == 3

    def test_the_first_of_a_sweep_is_read_again_when_its_siblings_come(self, tmp_path: Path) -> None:
        text = (picotron_run(tmp_path / "x") / "log_1001.out").read_text()
        for name in ("tp2", "tp4"):
            (tmp_path / "s" / name).mkdir(parents=True)
            (tmp_path / "s" / name / "run.log").write_text(text)
        first = parsed(tmp_path / "s" / "tp2")
        assert first["runs"]["sweep"].to_list() == ["tp2"]
        both = plan.find([str(tmp_path / "s")])
        pending = plan.plan(both, first["files"], first["runs"], now=NOW)
        assert pending.height == 2
        after = validate_batch(parse_batch(pending, now=NOW))
        assert set(after["runs"]["sweep"]) == {"s"}
        assert plan.plan(both, after["files"], after["runs"], now=NOW).is_empty()
        alone = plan.find([str(tmp_path / "s" / "tp2")])
        assert plan.plan(alone, after["files"], after["runs"], now=NOW).is_empty()


class TestBatches:
    def pending(self, *sizes: int) -> pl.DataFrame:
        """Units of two files each, of the given total sizes."""
        rows = [
            {"path": f"/{unit:03d}/{name}", "unit": f"/{unit:03d}", "bytes": size // 2}
            for unit, size in enumerate(sizes)
            for name in ("a.log", "b.log")
        ]
        return pl.DataFrame(rows, schema={"path": pl.String(), "unit": pl.String(), "bytes": pl.Int64()})

    def test_nothing_pending_no_batches(self) -> None:
        assert plan.batches(self.pending()) == []

    def test_a_batch_has_at_most_so_many_units(self) -> None:
        assert [part.height for part in plan.batches(self.pending(*[10] * 5), units=2)] == [4, 4, 2]

    def test_a_batch_is_about_so_large(self) -> None:
        parts = plan.batches(self.pending(60, 60, 10, 500, 10), size=100)
        assert [part["bytes"].sum() for part in parts] == [60, 70, 500, 10]

    def test_units_stay_whole_and_in_order(self) -> None:
        pending = self.pending(*range(0, 400, 20)).sample(fraction=1.0, shuffle=True, seed=3)
        parts = plan.batches(pending, units=3, size=700)
        assert sorted(pl.concat(parts)["path"]) == sorted(pending["path"])
        units = [unit for part in parts for unit in part["unit"].unique()]
        assert len(units) == len(set(units))


class TestParse:
    def test_a_run_directory_becomes_complete_rows(self, tmp_path: Path) -> None:
        picotron_run(tmp_path / "sweep", dp=4, tp=2, mbs=2, gas=4, seq_len=128)
        tables = parsed(tmp_path)
        (run,) = tables["runs"].to_dicts()
        assert (run["status"], run["num_gpus"], run["gbs"], run["gbs_tokens"], run["sweep"]) == (
            "completed",
            8,
            32,
            4096,
            "sweep",
        )
        assert tables["steps"].height == 6
        assert set(tables["runs"].columns) == set(TABLES["runs"].column_names)
        assert tables["rejects"].is_empty()

    def test_what_was_derived_stands_in_settings(self, tmp_path: Path) -> None:
        picotron_run(tmp_path, dp=4)
        derived = parsed(tmp_path)["settings"].filter(pl.col("setting_source") == "derived")
        assert {"gbs", "gbs_tokens"} <= set(derived["name"])
        assert derived["is_used"].all()

    def test_files_count_their_rows_and_rejects(self, tmp_path: Path) -> None:
        run = picotron_run(tmp_path, tail="[rank 0] Step: 7     | Loss: 7.9")
        tables = parsed(tmp_path)
        counts = {
            os.path.basename(path): rest
            for path, *rest in tables["files"].select("path", "rows_parsed", "lines_rejected").iter_rows()
        }
        assert counts["log_1001.out"][1] == 1
        assert counts["log_1001.out"][0] >= 7  # a run, its steps, its settings
        assert counts["status.txt"] == [0, 0]
        assert tables["rejects"]["file"].to_list() == [str(run / "log_1001.out")]

    def test_rows_that_break_their_schema_are_rejected_with_a_reason(self, tmp_path: Path) -> None:
        run = picotron_run(tmp_path, dp=4)
        config = run / "config.json"
        config.write_text(config.read_text().replace('"micro_batch_size": 1', '"micro_batch_size": 0'))
        tables = parsed(tmp_path)
        assert "mbs" in tables["rejects"]["column"].to_list()

    def test_parsing_twice_gives_the_same(self, tmp_path: Path) -> None:
        picotron_run(tmp_path / "s", dp=2, steps=3, tail=OOM_TAIL)
        picotron_run(tmp_path / "s", dp=4)
        first, second = parsed(tmp_path), parsed(tmp_path)
        assert all(first[name].equals(second[name]) for name in first)


def test_merging_keeps_tables_that_only_one_side_has() -> None:
    events = TABLES["events"].empty()
    merged = merge_tables({"events": events}, {"events": events, "accelerators": TABLES["accelerators"].empty()})
    assert set(merged) == {"events", "accelerators"}


def test_now_is_utc_without_a_zone() -> None:
    now = plan.utc_now()
    assert now.tzinfo is None
    assert abs(now - datetime.now(UTC).replace(tzinfo=None)) < timedelta(minutes=1)


def test_words_of_no_vocabulary_count_as_faulty_rows_and_figures_out_of_bounds_do_not() -> None:
    table = TABLES["runs"]
    good = table.conform(pl.DataFrame({"run_id": ["a", "b"], "status": ["oom", "hang"], "num_gpus": [8, 8]}))
    without = good.with_columns(pl.lit(None, pl.String).alias("status"), pl.lit(None, pl.Int64).alias("num_gpus"))
    assert faulty_rows(table, good, good) == 0
    assert faulty_rows(table, good, good.with_columns(without["num_gpus"])) == 0
    assert faulty_rows(table, good, good.with_columns(without["status"])) == 2
    assert faulty_rows(table, good, good.head(1)) == 1
