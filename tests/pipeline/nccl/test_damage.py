"""Whatever happens to a log on its way to the disk: no crash, valid rows, and never more than what stood there."""

from __future__ import annotations

import random
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sweepscope.pipeline.ingest.validate import validate
from sweepscope.pipeline.nccl.facts import Facts
from sweepscope.pipeline.nccl.lines import collectives, scan
from sweepscope.pipeline.nccl.lines.block import Part, block_of
from sweepscope.schemas.registry import NCCL_TABLES
from tests.pipeline.nccl.bench.test_printed_table import HEADER, ROW, TAIL
from tests.pipeline.nccl.nccl_logs import VERSIONS, Job, render
from tests.pipeline.nccl.reading import Tables, tables_from, tables_of, take_all_for_irregular
from tests.pipeline.nccl.tables.test_hangs import timeout
from tests.properties import THOROUGH, pairs, stated_examples

few = stated_examples(more=100)
versions = st.sampled_from(VERSIONS)
seeds = st.integers(0, 2**32)


def log_of(version: str, seed: int, *, calls: int = 40) -> tuple[Job, bytes]:
    job = render(Job(version, nodes=2, gpus=2, per_node=True, calls=calls, warns=5, seed=seed))
    hang = "".join(timeout(rank) for rank in range(3))
    return job, (job.text() + HEADER + ROW * 3 + TAIL + hang).encode()


def is_sound(tables: Tables, jobs: list[Job], *, logs: int = 1) -> None:
    """Rows satisfy their schemas, but for values that the damage put out of bounds, and count no more than was written."""
    for table in NCCL_TABLES:
        reasons = validate(table, tables[table.name]).rejects["reason"]
        assert reasons.str.contains("must be at least").all(), (table.name, reasons.to_list())
    written: dict[tuple[str, int], int] = {}
    for job in jobs:
        for key, calls in job.calls_by_op.items():
            written[key] = written.get(key, 0) + calls
    assert tables["nccl_collectives"]["calls"].sum() <= sum(written.values())
    assert tables["nccl_warnings"]["num_lines"].sum() <= sum(job.warns for job in jobs)
    assert tables["nccl_bench"].height <= 3 * logs
    assert tables["nccl_hangs"].height <= 6 * logs
    ready = tables["nccl_ranks"].filter(pl.col("init_state") != "started")
    assert ready.height <= sum(job.nranks * 2 for job in jobs)


@given(versions, seeds, st.floats(0, 1), st.floats(0, 1))
@example("2.4.8", 1, 0.0, 0.999)
@example("2.21.5", 2, 0.37, 0.4)
@example("2.29.2", 3, 0.012, 1.0)
@few
def test_cut_at_either_end(version: str, seed: int, begin: float, length: float) -> None:
    job, text = log_of(version, seed)
    first = int(begin * len(text))
    is_sound(tables_of(text[first : first + int(length * len(text))]), [job])


@given(versions, versions, seeds)
@example("2.7.8", "2.30.3", 1)
@example("2.18.5", "2.18.5", 2)
@few
def test_two_logs_line_by_line(first: str, second: str, seed: int) -> None:
    (one, a), (two, b) = log_of(first, seed), log_of(second, seed + 1)
    rng = random.Random(seed)  # noqa: S311
    lines = [a.splitlines(keepends=True), b.splitlines(keepends=True)]
    mixed = []
    while lines[0] or lines[1]:
        side = rng.randrange(2) if lines[0] and lines[1] else 0 if lines[0] else 1
        mixed.append(lines[side].pop(0))
    tables = tables_of(b"".join(mixed))
    is_sound(tables, [one, two], logs=2)
    # Whole lines lose nothing.
    assert tables["nccl_collectives"]["calls"].sum() == sum((one.calls_by_op + two.calls_by_op).values())
    assert tables["nccl_warnings"]["num_lines"].sum() == 10


@given(versions, versions, seeds, st.integers(64, 4096))
@example("2.12.12", "2.24.3", 1, 70)
@example("2.22.3-RCCL", "2.22.3-RCCL", 2, 4096)
@few
def test_two_logs_by_byte_blocks(first: str, second: str, seed: int, size: int) -> None:
    (one, a), (two, b) = log_of(first, seed), log_of(second, seed + 1)
    blocks = [part for at in range(0, max(len(a), len(b)), size) for part in (a[at : at + size], b[at : at + size])]
    is_sound(tables_of(b"".join(blocks)), [one, two], logs=2)


@given(versions, seeds)
@example("2.16.2", 1)
@example("2.30.3", 2)
@few
def test_one_percent_of_the_bytes_flipped(version: str, seed: int) -> None:
    job, text = log_of(version, seed, calls=120)
    rng = random.Random(seed)  # noqa: S311
    damaged = bytearray(text)
    for at in rng.sample(range(len(damaged)), len(damaged) // 100):
        damaged[at] ^= 1 << rng.randrange(8)
    is_sound(tables_of(bytes(damaged)), [job])


@given(versions, seeds, st.integers(200, 50_000))
@example("2.4.8", 1, 997)
@example("2.22.3-RCCL", 2, 4096)
@example("2.29.2", 3, 14_000)
@few
def test_it_does_not_matter_how_a_file_was_cut_into_blocks(version: str, seed: int, size: int) -> None:
    _, text = log_of(version, seed, calls=20)
    whole, cut = tables_of(text), tables_of(text, block_bytes=size)
    for name, frame in whole.items():
        assert cut[name].sort(pl.all()).equals(frame.sort(pl.all())), name


def as_they_are_and_all_irregular(text: bytes) -> tuple[Tables, Tables]:
    """Tables of a text, once read as it is, once with the messages of every line found one line at a time."""
    with pytest.MonkeyPatch.context() as patch:
        tables = tables_of(text)
        take_all_for_irregular(patch)
        return tables, tables_of(text)


def line_by_line(text: bytes) -> Tables:
    """Tables of the facts of each line alone: nothing is read from a neighbour, and facts add up in any number."""
    block = block_of([Part(0, text, 1)])
    alone = [
        replace(
            block,
            text=block.text[at : at + 1],
            line_no=block.line_no[at : at + 1],
            part=block.part[at : at + 1],
            source=block.source[at : at + 1],
        )
        for at in range(len(block.part))
    ]
    return tables_from(Facts.merge(scan.scan_blocks([one]) for one in alone), ["train.log"])


def assert_same(one: Tables, other: Tables) -> None:
    for name, frame in one.items():
        assert frame.sort(pl.all()).equals(other[name].sort(pl.all())), name


A, B = "0xa0", "0xb0"
CALL = "AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 1 datatype 7 op 0 root 0 comm {} [nranks=2] stream 0x3"
LAUNCHERS = (
    "",
    "{rank}: ",
    "{rank:3d}: ",
    "[1,{rank}]<stdout>:",
    "(Worker pid=7, ip=10.0.0.{rank}) ",
    "[2026-05-06 17:18:{rank:02d}] ",
    "2026-05-06T17:18:19.{rank:09d}Z stdout F ",
    "\x1b[36m(pid={rank})\x1b[0m ",
    "     8     2   float   sum   -1   ",
    "12:30:40 [1] ",
)


@pytest.mark.parametrize(("version", "launcher"), pairs(VERSIONS, LAUNCHERS))
def test_a_log_says_the_same_with_all_lines_irregular(version: str, launcher: str) -> None:
    job = render(Job(version, nodes=2, gpus=3, per_node=True, calls=20, warns=5, launcher=launcher))
    columns, lines = as_they_are_and_all_irregular(job.text().encode())
    assert columns["nccl_collectives"]["calls"].sum() == 120
    assert columns["nccl_ranks"].height == 12
    assert columns["nccl_links"]["link_channels"].sum() == 48
    assert_same(columns, lines)


@pytest.mark.parametrize("version", VERSIONS if THOROUGH else ("2.4.8", "2.29.2", "2.22.3-RCCL"))
def test_lines_read_one_at_a_time_say_what_they_say_together(version: str) -> None:
    text = render(Job(version, nodes=1, gpus=2, per_node=True, calls=3, warns=2)).text().encode()
    assert_same(tables_of(text), line_by_line(text))


@given(versions, versions, seeds, st.sampled_from(LAUNCHERS))
@example("2.29.2", "2.29.2", 50000000, "{rank:3d}: ")
@example("2.4.8", "2.22.3-RCCL", 1, "[1,{rank}]<stdout>:")
@example("2.21.5", "2.18.5", 2, "\x1b[36m(pid={rank})\x1b[0m ")
@few
def test_a_damaged_log_says_the_same_with_all_lines_irregular(one: str, two: str, seed: int, launcher: str) -> None:
    rng = random.Random(seed)  # noqa: S311
    a, b = (
        render(Job(version, per_node=True, calls=8, warns=4, seed=seed, launcher=launcher)).text().encode()
        for version in (one, two)
    )
    size = rng.randrange(100, 1000)
    mixed = bytearray(
        b"".join(part for at in range(0, len(a), size) for part in (a[at : at + size], b[at : at + size]))
    )
    for at in rng.sample(range(len(mixed)), len(mixed) // rng.choice((100, 1000))):
        mixed[at] = rng.choice(b" \r\t:[]0129afNCL-./\x00\xff")
    assert_same(*as_they_are_and_all_irregular(bytes(mixed)))


def test_a_line_whose_host_swallowed_a_text_still_parts_communicators() -> None:
    """Its host is mended when the whole file is known; what stands before and behind it was put together by then."""

    about = "comm {} rank 0 nranks 2 cudaDev 0 busId 1b000 - Init COMPLETE"
    link = "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC"
    one = [f"n1:7:7 [0] NCCL INFO {link}", f"oopsn1:7:7 [0] NCCL INFO {about}", f"n1:7:7 [0] NCCL INFO {CALL}"]
    text = "".join(f"{line}\n".format(address) for address in (A, B, A) for line in one)
    for tables in (*as_they_are_and_all_irregular(text.encode()), tables_of(text, block_bytes=len(text) // 2)):
        assert tables["nccl_links"].sort("comm_index")["link_channels"].to_list() == [1, 1, 1]
        assert tables["nccl_communicators"].sort("comm_index")["coll_calls"].to_list() == [1, 1, 1]


def test_files_scanned_together_say_what_each_says_alone() -> None:
    jobs = [render(Job(version, calls=3, warns=2, seed=at, per_node=True)) for at, version in enumerate(VERSIONS)]
    texts = [
        *(job.text() for job in jobs),
        jobs[0].text(),
        HEADER + ROW * 2 + TAIL,
        "loss 1.0\n",
        "".join(map(timeout, range(3))),
    ]
    parts = [Part(at, text.encode(), 1) for at, text in enumerate(texts)]
    together = scan.scan_parts(parts)
    for part in parts:
        alone = scan.scan_parts([part])
        mine = together.of([part.source])
        assert set(mine.frames) == set(alone.frames)
        for kind, frame in alone.frames.items():
            assert mine[kind].sort(pl.all()).equals(frame.sort(pl.all())), (part.source, kind)


@pytest.mark.parametrize(("version", "launcher"), pairs(VERSIONS, LAUNCHERS[:5]))
def test_whole_blocks_say_what_single_lines_say(version: str, launcher: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = render(Job(version, nodes=1, gpus=12, calls=300, launcher=launcher))
    fast = tables_of(job.text())
    assert collectives.is_worth_it(job.text().encode())
    monkeypatch.setattr(collectives, "is_worth_it", lambda _data: False)
    slow = tables_of(job.text())
    assert fast["nccl_collectives"]["calls"].sum() == 3600
    for name, frame in slow.items():
        assert fast[name].sort(pl.all()).equals(frame.sort(pl.all())), name


@given(seeds)
@example(1)
@example(2)
@few
def test_glued_and_damaged_calls_among_many_intact_ones(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    job = render(Job("2.21.5", nodes=1, gpus=4, calls=200, seed=seed))
    lines = job.text().splitlines(keepends=True)
    at = next(place for place, line in enumerate(lines) if "opCount" in line)
    for _ in range(20):
        place = rng.randrange(at, len(lines) - 1)
        if rng.random() < 0.5:
            lines[place] = lines[place].rstrip("\n")[: rng.randrange(20, 150)]  # cut, and glued to the next
        else:
            lines[place] = lines[place].replace("count", "cou\x00t", 1)
    tables = tables_of("".join(lines))
    intact = sum(" opCount " in line and " count " in line and line.endswith("\n") for line in lines)
    is_sound(tables, [job])
    assert intact - 20 <= tables["nccl_collectives"]["calls"].sum() <= 800
