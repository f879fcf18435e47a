"""Which files belong together, and which have changed, from a listing alone."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.ingest.discover import FOUND, changed, discover
from sweepscope.pipeline.ingest.file_kinds import file_kind
from sweepscope.pipeline.io.files import Entry
from sweepscope.schemas.registry import TABLES
from sweepscope.schemas.vocab import FILE_KIND


def found(*paths: str, simulated: str = "", named: tuple[str, ...] = ()) -> pl.DataFrame:
    entries = [Entry(path, 10, 1.5) for path in paths]
    return discover(entries, is_simulated=lambda place: bool(simulated) and place.startswith(simulated), named=named)


def column(frame: pl.DataFrame, name: str) -> dict[str, object]:
    return dict(frame.select("path", name).iter_rows())


class TestKinds:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("log_410022.out", "log"),
            ("train.log", "log"),
            ("train.err", "log"),
            ("console.txt", "log"),
            ("train.log.gz", "log"),
            ("train.log.zst", "log"),
            ("train.log.1", "log"),
            ("train.log.2.gz", "log"),
            ("job.o410022", "log"),
            ("job.e410022", "log"),
            ("TRAIN.LOG", "log"),
            ("a.b c.out", "log"),
            ("config.json", "config"),
            ("status.txt", "status"),
            ("bench.csv", "bench_csv"),
            ("bench.csv.gz", "bench_csv"),
            ("model.safetensors", "other"),
            ("README.md", "bench_csv"),
            ("requirements.txt", "other"),
            ("x", "other"),
            ("2025.01", "other"),
            (".log", "other"),
            ("script.sh", "other"),
            ("run.online", "other"),
        ],
    )
    def test_by_name(self, name: str, kind: str) -> None:
        assert file_kind(name) == kind

    @given(st.text(alphabet=st.characters(exclude_characters="/\0"), min_size=1, max_size=20))
    def test_any_name_has_one(self, name: str) -> None:
        assert file_kind(name) in FILE_KIND

    def test_a_file_that_the_user_names_is_a_log(self) -> None:
        assert column(found("/a/stdout", "/a/model.pt", named=("/a/stdout",)), "kind") == {
            "/a/stdout": "log",
            "/a/model.pt": "other",
        }


class TestJobs:
    def test_a_file_without_one_belongs_to_the_newest_job_of_its_run_directory(self) -> None:
        rows = found("/s/r/log_999.out", "/s/r/log_1000.out", "/s/r/config.json", "/s/r/stderr.txt")
        assert column(rows, "job") == {
            "/s/r/log_999.out": "999",
            "/s/r/log_1000.out": "1000",
            "/s/r/config.json": "1000",
            "/s/r/stderr.txt": "1000",
        }


class TestUnits:
    def test_no_files(self) -> None:
        assert found().is_empty()
        assert found().schema == FOUND

    def test_a_configuration_beside_a_log_makes_a_run_directory(self) -> None:
        rows = found("/s/r/log_1.out", "/s/r/config.json", "/s/r/weights.bin")
        assert set(rows["unit"]) == {"/s/r"}
        assert set(rows["sweep"]) == {"s"}

    def test_a_configuration_alone_makes_none(self) -> None:
        assert column(found("/s/r/config.json"), "unit") == {"/s/r/config.json": "/s/r/config.json"}

    def test_streams_of_one_stem_are_one_unit(self) -> None:
        rows = found("/s/train.out", "/s/train.err", "/s/other.log", "/s/j.o4711", "/s/j.e4711")
        units = column(rows, "unit")
        assert units["/s/train.out"] == units["/s/train.err"]
        assert units["/s/j.o4711"] == units["/s/j.e4711"]
        assert rows["unit"].n_unique() == 3

    def test_logs_of_several_runs_lie_in_their_sweep(self) -> None:
        assert set(found("/s/a.log", "/s/b.log")["sweep"]) == {"s"}

    def test_directories_of_one_log_each_lie_in_the_one_above(self) -> None:
        assert set(found("/s/tp2/run.log", "/s/tp4/run.log")["sweep"]) == {"s"}
        assert set(found("/s/tp2/run.log")["sweep"]) == {"tp2"}

    def test_equal_names_in_two_directories_stay_apart(self) -> None:
        rows = found("/s/a/log_1.out", "/s/a/config.json", "/s/b/log_1.out", "/s/b/config.json")
        assert rows["unit"].n_unique() == 2

    def test_only_what_the_simulator_wrote_is_simulated(self) -> None:
        rows = found("/s/a.log", "/t/b.log", simulated="/t")
        assert column(rows, "origin") == {"/s/a.log": "measured", "/t/b.log": "simulated"}

    def test_urls(self) -> None:
        rows = found("s3://bucket/sweep/run/log_1001.out", "s3://bucket/sweep/run/config.json")
        assert rows.select("unit", "sweep", "job").unique().rows() == [("s3://bucket/sweep/run", "sweep", "1001")]

    def test_the_order_of_the_listing_does_not_matter(self) -> None:
        paths = ["/s/r/log_1.out", "/s/r/config.json", "/s/b.log", "/t/c.log"]
        assert found(*paths).equals(found(*paths[::-1]))


class TestChanged:
    VERSIONS = {"": 1, "picotron": 2}  # noqa: RUF012 - a constant

    def ledger(self, rows: pl.DataFrame, **overrides: object) -> pl.DataFrame:
        """The `files` table after `rows` were read, with overrides for all of them."""
        read = {"parser": "picotron", "parser_version": 2, "status": "parsed"} | overrides
        return TABLES["files"].conform(rows.with_columns(pl.lit(value).alias(name) for name, value in read.items()))

    def paths(self, rows: pl.DataFrame, ledger: pl.DataFrame) -> list[str]:
        return changed(rows, ledger, versions=self.VERSIONS)["path"].to_list()

    def test_everything_is_new_to_an_empty_ledger(self) -> None:
        rows = found("/s/a.log", "/s/b.log")
        assert self.paths(rows, TABLES["files"].empty()) == ["/s/a.log", "/s/b.log"]

    def test_nothing_is_new_the_second_time(self) -> None:
        rows = found("/s/r/log_1.out", "/s/r/config.json", "/s/r/x.bin", "/s/a.log")
        assert self.paths(rows, self.ledger(rows)) == []

    def test_a_new_file_brings_its_whole_unit(self) -> None:
        before = found("/s/r/log_1.out", "/s/r/config.json", "/s/a.log")
        after = found("/s/r/log_1.out", "/s/r/config.json", "/s/a.log", "/s/r/log_2.out")
        assert self.paths(after, self.ledger(before)) == ["/s/r/config.json", "/s/r/log_1.out", "/s/r/log_2.out"]

    @pytest.mark.parametrize("change", [{"bytes": 11}, {"mtime": 2.5}], ids=["grown", "touched"])
    def test_a_changed_file_brings_its_whole_unit(self, change: dict[str, object]) -> None:
        before = found("/s/a.log", "/s/a.err", "/s/b.log")
        touched = pl.col("path") == "/s/a.err"
        after = before.with_columns(
            pl.when(touched).then(pl.lit(value)).otherwise(pl.col(name)).alias(name) for name, value in change.items()
        )
        assert self.paths(after, self.ledger(before)) == ["/s/a.err", "/s/a.log"]

    def test_another_version_of_a_parser_brings_its_files(self) -> None:
        rows = found("/s/a.log")
        for version in (1, 3):
            assert self.paths(rows, self.ledger(rows, parser_version=version)) == ["/s/a.log"]

    def test_what_no_parser_knew_is_read_again_by_a_newer_engine(self) -> None:
        rows = found("/s/a.log")
        assert self.paths(rows, self.ledger(rows, parser=None, parser_version=1)) == []
        assert self.paths(rows, self.ledger(rows, parser=None, parser_version=0)) == ["/s/a.log"]

    def test_a_parser_that_no_longer_exists_changes_nothing(self) -> None:
        rows = found("/s/a.log")
        assert self.paths(rows, self.ledger(rows, parser="gone")) == []

    def test_a_file_that_has_moved_into_a_run_directory_is_read_again(self) -> None:
        before = found("/s/r/log_1.out")
        after = found("/s/r/log_1.out", "/s/r/config.json")
        assert self.paths(after, self.ledger(before)) == ["/s/r/config.json", "/s/r/log_1.out"]

    def test_a_deleted_file_is_no_change(self) -> None:
        before = found("/s/r/log_1.out", "/s/r/config.json", "/s/r/x.txt")
        after = found("/s/r/log_1.out", "/s/r/config.json")
        assert self.paths(after, self.ledger(before)) == []
