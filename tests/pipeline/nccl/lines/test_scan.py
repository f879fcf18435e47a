"""Lines that tell something, looked for first and read later with those of other blocks: nothing is lost or added."""

from __future__ import annotations

import random
from collections.abc import Callable

import polars as pl
import pytest

from sweepscope.pipeline.nccl.facts import Facts
from sweepscope.pipeline.nccl.lines.block import Block, Part, block_of
from sweepscope.pipeline.nccl.lines.irregular_lines import IrregularLines
from sweepscope.pipeline.nccl.lines.scan import scan_blocks, scan_parts
from sweepscope.pipeline.nccl.lines.selection import select_lines
from sweepscope.pipeline.text.lines import split_parts
from tests.pipeline.nccl.bench.test_printed_table import HEADER, ROW, TAIL
from tests.pipeline.nccl.nccl_logs import VERSIONS, Job, render
from tests.pipeline.nccl.reading import tables_from
from tests.pipeline.nccl.tables.test_hangs import timeout

ERROR = "[rank1]: torch.distributed.DistBackendError: NCCL error\n[rank2]: ValueError: no data\nworld_size: 4\n"


def among_steps(text: str, rng: random.Random, most: int) -> bytes:
    """A log in which most lines are of the training."""
    lines = []
    for line in text.splitlines(keepends=True):
        lines += [f"step {rng.random()} loss 1.0 12 13\n"] * rng.randrange(most)
        lines.append(line)
    return "".join(lines).encode()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_sifted_lines_say_what_whole_blocks_say(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  # the same lines every time
    job = render(
        Job(VERSIONS[seed % len(VERSIONS)], nodes=2, gpus=2, per_node=True, calls=300, warns=5, seed=seed)
    ).text()
    hang = "".join(timeout(rank) for rank in range(3))
    wrapped = timeout(3)[:120] + "\n" + timeout(3)[120:]
    table = (HEADER + ROW * 3 + TAIL).encode()
    texts = [
        among_steps(job + ERROR, rng, 9),
        among_steps(hang + wrapped, rng, 4),
        table,
        b"loss 1.0\n" * 50,
        among_steps(job, rng, 2),
        job.encode(),
        among_steps("NCCL\n", rng, 9) + table,
        b"",
        among_steps(job, rng, 9).replace(b"opCount", b"op\xffCount", 3),
    ]
    parts = [Part(at, text, 1) for at, text in enumerate(texts)]
    names = [f"log-{at}" for at in range(len(texts))]
    facts, sifted = select_lines(parts, *split_parts((part.source, part.data, part.first_line) for part in parts))
    assert sum(block.text_bytes for block in sifted) < sum(map(len, texts)) / 2
    mine, whole = tables_from(Facts.merge([facts, scan_blocks(sifted)]), names), tables_from(scan_parts(parts), names)
    assert whole["nccl_hangs"].height > 0
    assert whole["nccl_collectives"].height > 0
    assert whole["nccl_bench"].height == 6
    for name, frame in whole.items():
        assert mine[name].sort(pl.all()).equals(frame.sort(pl.all())), name


def test_the_parts_of_blocks_stay_apart() -> None:
    blocks = [
        block_of([Part(5, b"a\n", 1), Part(6, b"b\nc\n", 7)]),
        block_of([]),
        block_of([Part(5, b"\x1b[0md\n", 2)]),
    ]
    joined = Block.joined(blocks)
    assert list(
        zip(joined.part.tolist(), joined.source.tolist(), joined.line_no.tolist(), joined.text, strict=True)
    ) == [
        (0, 5, 1, "a\n"),
        (1, 6, 7, "b\n"),
        (1, 6, 8, "c\n"),
        (2, 5, 2, "\x1b[0md\n"),
    ]
    assert joined.has_escapes
    assert not Block.joined([]).text.len()


def test_of_a_log_full_of_nccl_lines_what_tells_something_is_left() -> None:
    line = "n1:7:8 [0] NCCL INFO Using network IB\n"
    data = ("step 1 loss 1.0\n" + line * 9 + "world_size: 4\n").encode() * 20
    lines, counts = split_parts([(3, data, 11)])
    _, (block,) = select_lines([Part(3, data, 11)], lines, counts)
    assert "".join(block.text) == (line * 9 + "world_size: 4\n") * 20
    assert block.line_no[:11].tolist() == [*range(12, 22), 23]
    assert set(block.source.tolist()) == {3}


def odd_line(kind: str) -> str:
    """A line with NCCL or beside it that tells something of the kind, in no regular form."""
    return {
        "version": "NCCL version 2.20.5+cuda12.4\n",
        "coloured": "\x1b[32mn1:7:8 [0] NCCL\x1b[0m WARN Cuda failure 'x'\n",
        "warning": "n1:7:8 [0] init.cc:9 NCCL WARN Cuda failure 'x'\n",
        "hang": timeout(1).splitlines(keepends=True)[0],
        "library": "# nccl-tests version 2.17.6 nccl-headers=22902 nccl-library=22902\n",
        "row": ROW,
        "late": "x" * 5_000 + " NCCL version 2.19.3\n",
    }[kind]


@pytest.mark.parametrize("kind", ["version", "coloured", "warning", "hang", "library", "row", "late"])
def test_of_odd_lines_those_that_may_tell_something_are_read(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    many = 60
    idle = "[rank0]:[W1 0:0:0.1 ProcessGroupNCCL.cpp:1] Warning: not destroyed\n" + "# step 3 took  12.5  4.5  1.5 s\n"
    read: list[str] = []
    for name in ("line", "bench_line"):
        monkeypatch.setattr(IrregularLines, name, _noting(getattr(IrregularLines, name), read))
    facts = scan_parts([Part(0, (HEADER + (idle + odd_line(kind)) * many).encode(), 1)])
    assert len([line for line in read if line == odd_line(kind)]) == many
    assert len(read) == many + len([line for line in read if line in HEADER])
    assert facts
    read.clear()
    monkeypatch.undo()
    alone = scan_parts([Part(0, (HEADER + odd_line(kind) * many).encode(), 1)])
    for name, frame in alone.frames.items():
        drop = [column for column in ("line_no", "last_line") if column in frame.columns]
        assert facts[name].drop(drop).equals(frame.drop(drop)), name


def test_a_wrapped_line_is_read_though_its_first_piece_tells_nothing() -> None:
    line, idle = timeout(1).splitlines()[0], "[rank0]:[W1 0:0:0.1 ProcessGroupNCCL.cpp:1] Warning: not destroyed\n"
    cut = line.index("Watchdog caught") + 4
    facts = scan_parts([Part(0, (idle * 60 + line[:cut] + "\n" + line[cut:] + "\n" + idle).encode(), 1)])
    assert facts["watchdog"].select("kind", "line_no").rows() == [("timeout", 61)]


def _noting(read: Callable[..., None], seen: list[str]) -> Callable[..., None]:
    def noting(reader: IrregularLines, raw: str, *place: int) -> None:
        seen.append(raw)
        read(reader, raw, *place)

    return noting
