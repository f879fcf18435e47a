"""A log that is read piece by piece, as it grows, gives what it gives when it is read whole."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sweepscope.pipeline.ingest import accumulator, plan
from sweepscope.pipeline.ingest.batch import Tables, parse_batch
from sweepscope.pipeline.ingest.discover import discover
from sweepscope.pipeline.io import stream
from sweepscope.pipeline.io.files import list_files
from sweepscope.pipeline.simulate.generate import generate
from sweepscope.pipeline.simulate.render import render
from sweepscope.pipeline.store.checkpoints import REST_AFTER, Records
from sweepscope.schemas.thresholds import STALE_AFTER
from tests.paths import GOLDEN
from tests.pipeline.ingest.test_parser_versions import change_source
from tests.pipeline.logs.dialects.test_composer import block
from tests.pipeline.logs.runs.test_assemble import OOM, config, line, log
from tests.properties import stated_examples

NOW = datetime(2030, 1, 1)
_CASES = sorted(path for path in GOLDEN.glob("*/*") if path.is_dir() and not list(path.glob("*.csv")))

# How a file was read, not what it says.
_READING = ("sha256", "read_bytes")


@dataclass
class Place:
    """A directory of files that change, and the records of what was read of them."""

    folder: Path
    min_bytes: int = 0

    def write(self, name: str, data: bytes | str, *, at: datetime = NOW) -> None:
        path = self.folder / "sweep" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        os.utime(path, times=(at.replace(tzinfo=UTC).timestamp(),) * 2)

    def append(self, name: str, data: bytes | str, *, at: datetime = NOW) -> None:
        before = (self.folder / "sweep" / name).read_bytes()
        self.write(name, before + (data.encode() if isinstance(data, str) else data), at=at)

    def found(self) -> pl.DataFrame:
        return discover(list_files(str(self.folder / "sweep")), is_simulated=lambda _place: False)

    def records(self, now: datetime = NOW) -> Records:
        return Records(self.folder / "records", now, min_bytes=self.min_bytes)

    def read_on(self, now: datetime = NOW) -> Tables:
        """Every table, as an ingest that remembers gives it before it looks at values."""
        return parse_batch(self.found(), now=now, records=self.records(now))

    def read_whole(self, now: datetime = NOW) -> Tables:
        """Every table, as an ingest that knows nothing gives it."""
        return parse_batch(self.found(), now=now)

    def bytes_read(self, tables: Tables) -> dict[str, int]:
        rows = tables["files"].select("path", "read_bytes").iter_rows()
        return {os.path.relpath(path, self.folder / "sweep"): size for path, size in rows}

    def file(self, tables: Tables, name: str) -> dict[str, object]:
        return tables["files"].filter(path=str(self.folder / "sweep" / name)).row(0, named=True)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(stream, "FINGERPRINT_BYTES", 64)
    return Place(tmp_path)


def differing(one: Tables, other: Tables) -> list[str]:
    """Tables that are not the same, row by row and in the same order."""
    assert set(one) == set(other)
    return [
        name
        for name in one
        if not one[name].drop(_READING, strict=False).equals(other[name].drop(_READING, strict=False))
    ]


def is_same_at_every_step(files: Mapping[str, bytes], steps: Sequence[Mapping[str, int]]) -> int:
    """Cut `files` to the sizes of each step in turn; reading on must give what reading from the beginning gives.

    Returns how often a log was read on.
    """
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        for sizes in [*steps, {name: len(data) for name, data in files.items()}]:
            for name, data in files.items():
                place.write(name, data[: sizes.get(name, 0)])
            tables = place.read_on()
            assert differing(tables, place.read_whole()) == [], sizes
            count += tables["files"].filter(pl.col("sha256").is_null(), kind="log", status="parsed").height
    return count


def growth(files: Mapping[str, bytes], seed: int) -> list[dict[str, int]]:
    """Sizes of the files at up to three moments; each file grows by itself, or stays."""
    rng = random.Random(seed)  # noqa: S311 - sizes, not secrets
    count = rng.randint(1, 3)
    cuts = {name: sorted(rng.randint(0, len(data)) for _ in range(count)) for name, data in files.items()}
    return [{name: sizes[step] for name, sizes in cuts.items()} for step in range(count)]


def is_same_however_it_grows(files: Mapping[int, Mapping[str, bytes]]) -> int:
    """The same for several sets of files beside each other, each of which grows as its key, a seed, has it."""
    growths = {seed: growth(content, seed) for seed, content in files.items()}
    moments = max(map(len, growths.values()))
    steps = [
        {
            f"{seed}/{name}": size
            for seed, sizes in growths.items()
            for name, size in sizes[min(at, len(sizes) - 1)].items()
        }
        for at in range(moments)
    ]
    return is_same_at_every_step(
        {f"{seed}/{name}": data for seed, c in files.items() for name, data in c.items()}, steps
    )


_SEEDS = st.lists(st.integers(0, 10_000), min_size=1, max_size=2, unique=True)


@stated_examples()
@given(seeds=_SEEDS)
@example(seeds=[4])
def test_every_dialect_gives_the_same_wherever_it_was_cut(seeds: list[int]) -> None:
    files = {
        str(path.relative_to(GOLDEN)): path.read_bytes()
        for case in _CASES
        for path in case.iterdir()
        if path.name != "expected.json"
    }
    # How often depends on where the seeds cut.
    assert is_same_however_it_grows(dict.fromkeys(seeds, files)) >= len(seeds) * len(_CASES) / 2


@stated_examples()
@given(seeds=_SEEDS)
@example(seeds=[6])
def test_run_directories_give_the_same_while_their_files_grow(seeds: list[int]) -> None:
    is_same_however_it_grows(
        {
            seed: {f"{run.path}/{name}": data for run in generate(seed, 4) for name, data in render(run).items()}
            for seed in seeds
        }
    )


def is_same_after_every_cut(text: bytes, cuts: Sequence[int]) -> None:
    """One file per cut, all of them read together, first as far as the cut and then whole."""
    files = {f"{cut}/train.log": text for cut in cuts}
    assert is_same_at_every_step(files, [{f"{cut}/train.log": cut for cut in cuts}]) >= len(cuts) / 2


def test_a_block_of_several_lines_may_be_cut_anywhere() -> None:
    size = "\t Train trainer/device_train_microbatch_size: 2\n"
    text = (block(1, 12.5) + size + block(2, 12.25) + size + block(3, 12.0)).encode()
    is_same_after_every_cut(text, range(1, len(text), 7))


def test_an_argument_dump_may_be_cut_anywhere() -> None:
    (text,) = ((path / "run.out").read_bytes() for path in _CASES if path.name == "two_runs_2025")
    cuts = range(text.index(b"--- arguments ---"), text.index(b"end of arguments"), 97)
    assert len(cuts) > 5
    is_same_after_every_cut(text, cuts)


def test_a_character_and_a_line_end_may_be_cut() -> None:
    text = "Größe █████ 😀 ≥\r\n".encode() + log(1, 2).replace("\n", "\r\n").encode()
    is_same_after_every_cut(text, [*range(40), *range(len(text) - 5, len(text) + 1)])


class TestLongLogWithoutAnOwner:
    """Its lines do not wait for one, so that its record would lack them."""

    OWN = "".join(f"iter {n} | loss {9 - n / 1000:.4f} | dt 0.250 s | {16_000 + n} tok/s\n" for n in range(1, 2001))

    @pytest.fixture(autouse=True)
    def _small_limits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(accumulator, "BLOCK_BYTES", 8 << 10)
        monkeypatch.setattr(accumulator, "MANY_BYTES", 8 << 10)
        monkeypatch.setattr(accumulator, "READ_BYTES", 4 << 10)
        monkeypatch.setattr(accumulator, "UNDECIDED_BYTES", 16 << 10)

    def records_of(self, place: Place) -> int:
        return len(list((place.folder / "records").glob("*.zip")))

    def test_it_is_read_whole_again(self, place: Place) -> None:
        place.write("own.log", self.OWN)
        assert place.read_on()["steps"].height == 2000
        assert self.records_of(place) == 0
        place.append("own.log", self.OWN.replace("iter ", "iter 9")[:500])
        tables = place.read_on()
        assert tables["steps"].height > 2000
        assert differing(tables, place.read_whole()) == []

    def test_a_short_one_that_has_grown_long(self, place: Place) -> None:
        place.write("own.log", self.OWN[:5000])
        place.read_on()
        assert self.records_of(place) == 1
        place.append("own.log", self.OWN[5000:])
        assert differing(place.read_on(), place.read_whole()) == []
        assert self.records_of(place) == 0

    def test_another_log_beside_it_that_came_before_it(self, place: Place) -> None:
        """Its lines wait, too, until those of the long one are too many."""
        place.write("a.log", self.OWN[:5000])
        place.write("b.log", self.OWN)
        place.read_on()
        place.append("a.log", self.OWN[5000:9000])
        assert differing(place.read_on(), place.read_whole()) == []

    def test_an_owner_that_comes_late(self, place: Place) -> None:
        place.write("late.log", self.OWN)
        place.read_on()
        place.append("late.log", log(1, 400))
        assert differing(place.read_on(), place.read_whole()) == []


class TestReadingOn:
    def test_only_what_is_new_is_read(self, place: Place) -> None:
        place.write("a.log", log(1, 400))
        first = place.read_on()
        before = place.file(first, "a.log")
        assert before["read_bytes"] == before["bytes"] == before["offset_bytes"]
        new = log(401, 410)
        place.append("a.log", new)
        tables = place.read_on()
        assert tables["steps"]["step"].to_list() == list(range(1, 411))
        assert tables["steps"]["line_no"].to_list() == list(range(1, 411))
        assert place.bytes_read(tables) == {"a.log": len(new) + 2 * 64}

    def test_an_unfinished_line_counts_and_is_read_again(self, place: Place) -> None:
        whole = log(1, 9)
        place.write("a.log", whole + line(10)[:40])
        tables = place.read_on()
        assert place.file(tables, "a.log")["offset_bytes"] == len(whole)
        assert tables["rejects"]["line_no"].to_list() == [10]
        place.write("a.log", whole + log(10, 11))
        tables = place.read_on()
        assert tables["rejects"].is_empty()
        assert tables["steps"]["step"].to_list() == list(range(1, 12))

    def test_files_of_a_unit_that_stay_as_they_are_cost_nothing(self, place: Place) -> None:
        place.write("r/config.json", config())
        place.write("r/log_1.out", log(1, 200))
        place.write("r/log_1.err", "warning\n" * 2000)
        first = place.read_on()
        place.append("r/log_1.out", log(201, 210))
        tables = place.read_on()
        read = place.bytes_read(tables)
        assert read["r/log_1.err"] == 128
        assert read["r/log_1.out"] == len(log(201, 210)) + 128
        for name in ("r/log_1.err", "r/config.json"):
            assert place.file(tables, name)["sha256"] == place.file(first, name)["sha256"] is not None

    def test_compressed_parts_of_a_unit_are_read_again_only_if_they_change(self, place: Place) -> None:
        place.write("r/config.json", config())
        place.write("r/log_1.err.gz", gzip.compress(log(1, 200).encode()))
        place.write("r/log_1.out", log(201, 300))
        first = place.read_on()
        assert place.file(first, "r/log_1.err.gz")["offset_bytes"] is None
        place.append("r/log_1.out", log(301, 310))
        assert place.bytes_read(place.read_on())["r/log_1.err.gz"] == 128
        longer = gzip.compress(log(1, 220).encode(), mtime=0)
        place.write("r/log_1.err.gz", longer)
        again = place.read_on()
        assert place.file(again, "r/log_1.err.gz")["sha256"] == hashlib.sha256(longer).hexdigest()
        assert differing(again, place.read_whole()) == []

    def test_a_line_too_long_to_hold_is_noted_once_and_for_all(self, place: Place) -> None:
        place.write("a.log", log(1, 3).encode() + b"x" * (17 << 20) + b"\n" + log(4, 4).encode())
        place.read_on()
        place.append("a.log", log(5, 5))
        tables = place.read_on()
        assert place.bytes_read(tables)["a.log"] < 1000
        assert tables["rejects"].select("line_no", "reason").rows() == [(4, "a line of over 16 MiB was cut")]
        assert tables["steps"].select("step", "line_no").rows() == [(1, 1), (2, 2), (3, 3), (4, 5), (5, 6)]

    def test_after_an_unfinished_line_too_long_to_remember_reading_starts_anew(self, place: Place) -> None:
        place.write("a.log", log(1, 3).encode() + b"x" * (25 << 20))
        place.read_on()
        place.append("a.log", "\n" + line(4))
        tables = place.read_on()
        assert place.file(tables, "a.log")["read_bytes"] == place.file(tables, "a.log")["bytes"]
        assert differing(tables, place.read_whole()) == []

    def test_the_dialect_may_turn_out_late(self, place: Place) -> None:
        place.write("a.log", "Tokens per step: 1K\n" + log(1, 3))
        assert place.read_on()["runs"]["framework"].to_list() == ["picotron"]
        place.append("a.log", "- arguments -\n[after training is done]\n- end of arguments -\n" * 9)
        tables = place.read_on()
        assert differing(tables, place.read_whole()) == []

    def test_what_is_appended_while_a_file_is_read_waits_for_the_next_ingest(self, place: Place) -> None:
        place.write("a.log", log(1, 5))
        found = place.found()
        place.append("a.log", log(6, 9))
        tables = parse_batch(found, now=NOW, records=place.records())
        assert tables["steps"]["step"].to_list() == [1, 2, 3, 4, 5]
        assert place.file(tables, "a.log")["sha256"] == hashlib.sha256(log(1, 5).encode()).hexdigest()
        assert place.read_on()["steps"]["step"].to_list() == list(range(1, 10))

    def test_a_batch_older_than_the_record_is_read_from_the_beginning(self, place: Place) -> None:
        place.write("a.log", log(1, 5))
        found = place.found()
        place.append("a.log", log(6, 9))
        place.read_on()
        tables = parse_batch(found, now=NOW, records=place.records())
        assert tables["steps"]["step"].to_list() == [1, 2, 3, 4, 5]


class TestReadingAnew:
    def test_a_file_that_did_not_just_grow(self, place: Place) -> None:
        now_there = {
            "shorter": log(1, 5, loss=3.0),
            "rewritten": log(1, 40, loss=3.0),
            "put before": "a new first line\n" + log(1, 40),
            "head cut off": log(5, 40),
            "last line changed": log(1, 39) + line(40, loss=3.0) + log(41, 50),
            "emptied": "",
        }
        for name in now_there:
            place.write(f"{name}/a.log", log(1, 40))
        place.read_on()
        for name, text in now_there.items():
            place.write(f"{name}/a.log", text)
        assert differing(place.read_on(), place.read_whole()) == []

    def test_a_file_that_was_rotated(self, place: Place) -> None:
        place.write("a.log", log(1, 40))
        place.read_on()
        (place.folder / "sweep/a.log").rename(place.folder / "sweep/a.log.1")
        place.write("a.log", log(41, 80))
        tables = place.read_on()
        assert differing(tables, place.read_whole()) == []
        assert place.file(tables, "a.log")["sha256"] is not None

    def test_a_hole_that_copy_and_truncate_left(self, place: Place) -> None:
        place.write("a.log", log(1, 40))
        place.read_on()
        size = len(log(1, 40))
        place.write("a.log", b"\0" * size + log(41, 41).encode())
        assert place.read_on()["steps"]["step"].to_list() == [41]
        place.append("a.log", log(42, 42))
        assert place.read_on()["steps"]["step"].to_list() == [41, 42]

    def test_what_docker_keeps_of_a_container(self, place: Place) -> None:
        def kept(text: bytes) -> bytes:
            return b"".join(
                json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "2025-05-16T16:39:51.2Z"}).encode() + b"\n"
                for line in text.decode().splitlines()
            )

        place.write("a.log", kept(log(1, 3).encode()))
        place.read_on()
        place.append("a.log", kept(log(4, 5).encode()))
        tables = place.read_on()
        assert tables["steps"]["step"].to_list() == [1, 2, 3, 4, 5]
        assert place.file(tables, "a.log")["read_bytes"] == place.file(tables, "a.log")["bytes"]

    def test_utf16_and_what_is_damaged(self, place: Place) -> None:
        place.write("a.log", log(1, 3).encode("utf-16"))
        place.read_on()
        place.append("a.log", log(4, 5).encode("utf-16-le"))
        assert place.read_on()["steps"]["step"].to_list() == [1, 2, 3, 4, 5]
        place.write("b.log", log(1, 3))
        place.read_on()
        for record in (place.folder / "records").iterdir():
            data = bytearray(record.read_bytes())
            data[len(data) // 2] ^= 0xFF
            record.write_bytes(data)
        place.append("b.log", log(4, 5))
        tables = place.read_on()
        assert place.file(tables, "b.log")["read_bytes"] == place.file(tables, "b.log")["bytes"]
        assert differing(tables, place.read_whole()) == []

    def test_a_newer_parser(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        place.write("a.log", log(1, 40))
        place.read_on()
        change_source(monkeypatch, "logs/engine/extract.py")
        place.append("a.log", log(41, 42))
        tables = place.read_on()
        assert place.file(tables, "a.log")["read_bytes"] == place.file(tables, "a.log")["bytes"]

    def test_small_logs_and_old_ones_are_not_remembered(self, tmp_path: Path) -> None:
        place = Place(tmp_path, min_bytes=len(log(1, 40)) + 1)
        place.write("small.log", log(1, 40))
        place.write("old.log", log(1, 90), at=NOW - STALE_AFTER)
        place.read_on()
        assert list((tmp_path / "records").glob("*")) == []
        place.append("small.log", log(41, 42))
        place.read_on()
        assert len(list((tmp_path / "records").glob("*"))) == 1


class TestEnds:
    def test_a_run_is_running_until_its_end_arrives(self, place: Place) -> None:
        place.write("r/config.json", config(planned=6))
        place.write("r/log_1.out", log(1, 3))
        assert place.read_on()["runs"]["status"].to_list() == ["running"]
        place.append("r/log_1.out", log(4, 6))
        assert place.read_on()["runs"]["status"].to_list() == ["completed"]

    def test_a_run_fails_by_a_line_that_arrives_later(self, place: Place) -> None:
        place.write("a.log", log(1, 3))
        assert place.read_on()["runs"]["status"].to_list() == ["running"]
        place.append("a.log", OOM)
        assert place.read_on()["runs"]["status"].to_list() == ["oom"]

    def test_a_run_whose_log_stops_growing_is_truncated_and_may_come_back(self, place: Place) -> None:
        place.write("a.log", log(1, 3))
        known = place.read_on()
        later = NOW + STALE_AFTER + timedelta(minutes=1)
        pending = plan.plan(place.found(), known["files"], known["runs"], now=later)
        assert pending.height == 1
        stale = place.read_on(later)
        assert stale["runs"]["status"].to_list() == ["truncated"]
        assert place.bytes_read(stale) == {"a.log": 128}
        place.append("a.log", log(4, 5), at=later)
        back = place.read_on(later)
        assert back["runs"].select("status", "last_step").rows() == [("running", 5)]
        assert place.bytes_read(back) == {"a.log": len(log(4, 5)) + 128}

    def test_a_log_read_in_parts_is_read_whole_once_it_is_at_rest(self, place: Place) -> None:
        place.write("a.log", log(1, 40))
        place.read_on()
        place.append("a.log", log(41, 42))
        known = place.read_on()
        assert place.file(known, "a.log")["sha256"] is None

        def pending(known: Tables, pause: timedelta) -> int:
            settled = known["runs"].with_columns(status=pl.lit("truncated"))
            return plan.plan(place.found(), known["files"], settled, now=NOW + pause).height

        assert pending(known, REST_AFTER / 2) == 0
        assert pending(known, REST_AFTER) == 1
        whole = place.read_on(NOW + REST_AFTER)
        content = (place.folder / "sweep/a.log").read_bytes()
        assert place.file(whole, "a.log")["sha256"] == hashlib.sha256(content).hexdigest()
        assert pending(whole, REST_AFTER) == 0
        assert list((place.folder / "records").glob("*")) == []

    def test_a_silent_change_in_the_middle_is_found_when_the_log_is_at_rest(self, place: Place) -> None:
        text = log(1, 40)
        place.write("a.log", text)
        place.read_on()
        place.write("a.log", text.replace(line(20), line(20, loss=1.5)) + line(41))
        assert 1.5 not in place.read_on()["steps"]["loss"].to_list()
        assert 1.5 in place.read_on(NOW + REST_AFTER)["steps"]["loss"].to_list()
