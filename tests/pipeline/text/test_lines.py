"""The front door: bytes to lines, wherever they are cut."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.text import lines


def read(data: bytes) -> list[str]:
    """Every line, cleaned."""
    return cleaning.clean(lines.split(0, data))["text"].to_list()


class TestSplitting:
    def test_an_empty_file_has_no_lines(self) -> None:
        assert lines.split(0, b"").is_empty()
        printed = {name: cleaning.LINES[name] for name in ("source", "line_no", "text")}
        assert lines.split(0, b"").schema == pl.Schema({**printed, "template": pl.UInt64})

    def test_a_single_line_without_its_end_is_a_line(self) -> None:
        assert lines.split(7, b"step: 1", 42).drop("template").rows() == [(7, 42, "step: 1\n")]

    def test_lines_that_differ_in_digits_only_have_a_shape_in_common(self) -> None:
        first, second, shorter, other = lines.split(0, b"caf\xc3\xa9 12\ncaf\xc3\xa9 90\ncaf\xc3\xa9 9\ncafe 12\n")[
            "template"
        ]
        assert first == second
        assert len({first, shorter, other}) == 3

    def test_lines_are_counted_from_one_at_line_feeds(self) -> None:
        found = lines.split(0, b"a\n\nb\r\nc")
        assert found["line_no"].to_list() == [1, 2, 3, 4]
        assert read(b"a\n\nb\r\nc") == ["a", "", "b", "c"]

    def test_undecodable_bytes_are_replaced_and_end_with_their_line(self) -> None:
        # 0xe2 0x82 is the beginning of a three-byte character that never comes.
        assert read(b"caf\xe9\n\xe2\x82\nok\n") == ["caf\ufffd", "\ufffd", "ok"]

    def test_multi_byte_text_stays_whole(self) -> None:
        assert read("Größe ≥ 1 █\n😀\n".encode()) == ["Größe ≥ 1 █", "😀"]

    def test_nul_bytes_vanish_without_moving_line_numbers(self) -> None:
        assert read(b"a\0b\n\0\0\nc\n") == ["ab", "", "c"]
        assert read(b"\0\0") == []

    def test_a_byte_order_mark_is_not_part_of_the_first_line(self) -> None:
        assert read(b"\xef\xbb\xbfstep: 1\n") == ["step: 1"]
        assert read(b"\xef\xbb\xbf") == []

    def test_a_byte_order_mark_further_down_is_text(self) -> None:
        assert lines.split(0, b"\xef\xbb\xbfx\n", first_line=2)["text"].to_list() == ["\ufeffx\n"]

    def test_files_are_split_together_as_if_apart(self) -> None:
        parts = [(3, b"a\nb", 1), (5, b"", 1), (3, b"c\n", 3), (9, b"\xff\n", 8)]
        apart = pl.concat(lines.split(*part) for part in parts)
        assert lines.split_many(parts).equals(apart)
        assert lines.split_many(parts).select("source", "line_no").rows() == [(3, 1), (3, 2), (3, 3), (9, 8)]

    def test_broken_bytes_of_a_few_lines_are_replaced_and_all_other_lines_stay(self) -> None:
        printed = [b"loss \xce\xb1 %d\n" % number for number in range(2_000)]
        printed[700], printed[1_999] = b"cut \xe2\x96\n", b"\xff\xfe\n"
        data = b"".join(printed)
        assert "".join(lines.split(0, data)["text"]) == data.decode("utf-8", errors="replace")

    def test_nothing_to_split(self) -> None:
        assert lines.split_many([]).is_empty()


class TestLongLines:
    def test_an_over_long_line_is_a_block_of_its_own_with_what_was_left_out(self) -> None:
        data = b"first\n" + b"y" * 100_000 + b"\nlast\n"
        for size in (7, 50_000, len(data)):
            found = list(lines.blocks(cut(data, range(0, len(data), size)), max_line_bytes=30_000))
            long = [part for part in found if part[2]]
            assert long == [(b"y" * lines.MAX_LINE_CHARS + b"\n", 2, 100_000 - lines.MAX_LINE_CHARS)]
            assert b"".join(part[0] for part in found if not part[2]) == b"first\nlast\n"
            assert found[-1][1] == 3

    def test_an_over_long_last_line_without_its_end(self) -> None:
        found = list(lines.blocks([b"a\n" + b"z" * 90_000], max_line_bytes=40_000))
        assert [(line, dropped) for _, line, dropped in found] == [(1, 0), (2, 90_000 - lines.MAX_LINE_CHARS)]


def cut(data: bytes, places: range | list[int]) -> list[bytes]:
    """`data` in pieces that end at the given places."""
    return [data[start:end] for start, end in pairwise([*sorted({0, *places}), len(data)])]


LOG_BYTES = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from(
            [b"\n", b"\r\n", b"\r", b"\0", b"\xe2\x82\xac", b"\x1b[31m", b"[rank1]:", b"step: 1", b"x" * 200]
        ),
    ),
    max_size=60,
).map(b"".join)


@given(data=LOG_BYTES, places=st.lists(st.integers(0, 2000), max_size=12))
def test_lines_and_their_numbers_do_not_depend_on_where_the_file_is_cut(data: bytes, places: list[int]) -> None:
    whole = lines.split(0, data)
    chunks = cut(data, [place for place in places if place < len(data)])
    parts = [lines.split(0, block, first) for block, first, _ in lines.blocks(chunks)]
    assert pl.concat([whole.clear(), *parts]).equals(whole)


@given(data=LOG_BYTES, places=st.lists(st.integers(0, 2000), max_size=8), limit=st.integers(1, 150))
def test_a_line_limit_loses_nothing_of_shorter_lines(data: bytes, places: list[int], limit: int) -> None:
    chunks = cut(data, [place for place in places if place < len(data)])
    found: dict[int, tuple[bytes, int]] = {}
    for block, first, dropped in lines.blocks(chunks, max_line_bytes=limit):
        for offset, line in enumerate(block.removesuffix(b"\n").split(b"\n")):
            found[first + offset] = (line, dropped)
    expected = data.removesuffix(b"\n").split(b"\n") if data else []
    assert sorted(found) == list(range(1, len(expected) + 1))
    for (kept, dropped), line in zip((found[number] for number in sorted(found)), expected, strict=True):
        assert (kept, dropped) == (line, 0)  # none of these is longer than the head that is always kept


def test_a_line_of_200_mb_takes_seconds_and_little_memory() -> None:
    """In a process of its own, whose peak is then that of this one task."""
    script = textwrap.dedent(
        """
        import resource, time
        from sweepscope.pipeline.text import lines
        lines.split(0, b"warm up\\n")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.process_time()
        chunks = (b"x" * (1 << 20) for _ in range(200))
        dropped = sum(lost for _, _, lost in lines.blocks(chunks))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(dropped, grown // 1024, time.process_time() - begin)
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    dropped, grown_mib, seconds = done.stdout.split()
    assert int(dropped) == (200 << 20) - lines.MAX_LINE_CHARS
    assert int(grown_mib) < 100
    assert float(seconds) < 5


class TestManyLines:
    def test_a_block_has_a_limited_number_of_lines(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lines, "BLOCK_LINES", 4)
        data = b"".join(b"%d\n" % number for number in range(1, 11))
        assert list(lines.blocks([data], 5)) == [
            (b"1\n2\n3\n4\n", 5, 0),
            (b"5\n6\n7\n8\n", 9, 0),
            (b"9\n10\n", 13, 0),
        ]

    def test_of_many_empty_lines_the_last_is_kept_and_all_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lines, "BLOCK_LINES", 4)
        found = list(lines.blocks([b"\n" * 9 + b"a\n\n\n\n\n\n\n\n", b"b\n"]))
        assert found == [
            (b"\n", 4, 0),
            (b"\n", 8, 0),
            (b"\na\n\n\n", 9, 0),
            (b"\n", 16, 0),
            (b"\n", 17, 0),
            (b"b\n", 18, 0),
        ]
