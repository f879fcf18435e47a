"""Lines as dialects read them: those that matter, without what was put around them."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.text import lines


def read(data: bytes) -> list[str]:
    """Every line, cleaned."""
    return cleaning.clean(lines.split(0, data))["text"].to_list()


def only(data: bytes) -> dict[str, object]:
    rows = cleaning.clean(lines.split(0, data))
    assert rows.height == 1, rows
    return rows.row(0, named=True)


class TestCleaning:
    def test_lines_of_all_kinds_stay_in_order_and_as_each_is_alone(self) -> None:
        kinds = ["plain", "[rank3]: prefixed", "\x1b[1mpainted\x1b[0m", "gpu-1: a\rb", "x" * lines.MAX_LINE_CHARS + "y"]
        data = "\n".join(kinds * 3).encode()
        whole = lines.split(0, data)
        assert cleaning.clean(whole).equals(pl.concat(cleaning.clean(line) for line in whole.iter_slices(1)))
        assert cleaning.clean(whole)["line_no"].is_sorted()

    def test_a_redraw_without_the_literal_is_left_out(self) -> None:
        block = lines.split(0, b"step: 1\n[rank0]: 10%\rstep: 2\n[rank1]: step: 3\n")
        assert cleaning.candidates(block, ["step: "]).select("line_no", "text", "rank").rows() == [
            (1, "step: 1", None),
            (2, "step: 2", 0),
            (3, " step: 3", 1),
        ]


class TestNumbersOfLibraries:
    @pytest.mark.parametrize(
        ("printed", "shown"),
        [
            ("loss tensor(3.3929, device='cuda:0')", "loss 3.3929"),
            ("loss: tensor(2.5e-03, device='cuda:1', grad_fn=<NllLossBackward0>), lr 0.1", "loss: 2.5e-03, lr 0.1"),
            ("{'loss': np.float64(0.25), 'n': np.int64(-3)}", "{'loss': 0.25, 'n': -3}"),
            ("rmse DeviceArray(0.0186973, dtype=float32)", "rmse 0.0186973"),
            ("l Array(nan, dtype=float32, weak_type=True)", "l nan"),
        ],
    )
    def test_one_number_is_shown_bare(self, printed: str, shown: str) -> None:
        assert read(f"{printed}\n".encode()) == [shown]

    @pytest.mark.parametrize("text", ["x tensor([1.5, 2.0])", "tensor(3, 4)", "my_tensor(3.0)", "np.float64('nan')"])
    def test_what_is_not_one_number_stays(self, text: str) -> None:
        assert read(f"{text}\n".encode()) == [text]


class TestCarriageReturns:
    def test_each_redraw_is_a_row_of_its_line(self) -> None:
        rows = cleaning.clean(lines.split(0, b"x\n 10%|#|\r 50%|##|\rdone\n"))
        assert rows.select("line_no", "text").rows() == [(1, "x"), (2, " 10%|#|"), (2, " 50%|##|"), (2, "done")]

    def test_the_prefix_of_a_line_holds_for_each_redraw(self) -> None:
        rows = cleaning.clean(lines.split(0, b"[rank3]: 10%\r 50%\r[rank4]: done\n"))
        assert rows.select("text", "rank").rows() == [(" 10%", 3), (" 50%", 3), (" done", 4)]

    def test_control_characters_written_out_are_those_characters(self) -> None:
        found = cleaning.clean(lines.split(0, b"^M 10%|# | 1/10^M^[[32m20%|##| 2/10^[[0m^M\n"))
        assert found["text"].to_list() == ["", " 10%|# | 1/10", "20%|##| 2/10"]

    def test_an_error_right_behind_a_bar_is_found(self) -> None:
        rows = cleaning.candidates(
            lines.split(0, b"\r 3%|1/30 [00:01]\rTraceback (most recent call last):\n"), ["Traceback"]
        )
        assert rows["text"].to_list() == ["Traceback (most recent call last):"]

    @pytest.mark.parametrize(
        "bar",
        [
            "  0%|          | 0/24 [00:00<?, ?it/s]",
            "Map:  17%|#7        | 1.5k/9k [01:00:05<?, 3.59 examples/s]",
            "12it [00:05,  2.40it/s, loss=2.5]",
            "100%|##########| 9/9 [00:09<00:00,  1.08s/it, v_num=0, loss=3.1]",
        ],
    )
    def test_what_is_glued_to_a_bar_is_a_line(self, bar: str) -> None:
        rows = cleaning.clean(
            lines.split(0, f"{bar}[rank1]:[W1123 x.cpp:1] Warning\n{bar}\n{bar}\r{bar}Traceback\n".encode())
        )
        assert rows.select("line_no", "text", "rank").rows() == [
            (1, bar, None),
            (1, "[W1123 x.cpp:1] Warning", 1),
            (2, bar, None),
            (3, bar, None),
            (3, bar, None),
            (3, "Traceback", None),
        ]

    @pytest.mark.parametrize(
        "text", ["a[0]b", "x | 3/4 [00:01] y", "tensor([1/s]) | 1/2 [10:00]z", "[00:01<00:02]done"]
    )
    def test_brackets_of_other_things_end_no_line(self, text: str) -> None:
        assert read(f"{text}\n".encode()) == [text]

    def test_a_return_before_the_line_feed_is_part_of_the_line_end(self) -> None:
        assert read(b"a\r\r\nb\r\n") == ["a", "b"]

    def test_a_bar_of_megabytes_is_cut_redraw_by_redraw(self) -> None:
        bar = b"".join(b"\r%d/100000 steps" % i for i in range(100_000)) + b"\rstep: 7\n"
        found = cleaning.candidates(lines.split(0, b"\n" * 30 + bar + b"\n" * 30), ["step: "])
        assert found.select("line_no", "text").rows() == [(31, "step: 7")]


class TestColours:
    @pytest.mark.parametrize(
        "painted",
        [
            "\x1b[31mstep:\x1b[39m 1",
            "\x1b[1;31mstep:\x1b[0m 1",
            "\x1b[38;5;214mstep: \x1b[mst\x1b[0Kep".replace("\x1b[mst\x1b[0Kep", "1"),
            "\x1b[38;2;54;234;195mstep:\x1b[38;2;1;2;3m 1\x1b[0m",
            "\x1b[H\x1b[2Jstep: 1",
            "\x1b]0;window title\x07step: 1",
            "\x1b]8;;file:///a\x1b\\step: 1",
            "\x1b[?25lstep: 1\x1b[?25h",
        ],
    )
    def test_painted_text_reads_as_plain(self, painted: str) -> None:
        assert read(painted.encode() + b"\n") == ["step: 1"]

    def test_a_literal_with_a_colour_inside_still_makes_a_candidate(self) -> None:
        block = lines.split(0, b"\n" * 30 + b"CUDA out \x1b[31mof memory\x1b[0m\n" + b"\n" * 30)
        found = cleaning.candidates(block, ["out of memory"])
        assert found["text"].to_list() == ["CUDA out of memory"]

    def test_coloured_lines_without_a_literal_are_left_out(self) -> None:
        block = lines.split(0, b"\n" * 30 + b"\x1b[31mhello\x1b[0m\n" + b"\n" * 30)
        assert cleaning.candidates(block, ["step: "]).filter(text="hello").is_empty()


# Launcher prefixes of real logs: prefix, rank, host.
PREFIXES = [
    ("[default3]:", 3, None),
    ("[rank0]:", 0, None),
    ("0: ", 0, None),
    ("16: ", 16, None),
    (" 7: ", 7, None),
    ("vm-07-14: ", None, "vm-07-14"),
    ("[1,14]<stderr>:", 14, None),
    ("[1,14]<stdout>:", 14, None),
    ("[ip-26-0-147-189:0]:", None, "ip-26-0-147-189"),
    ("[20260511 02:59:23][rank-7/8][DEBUG] [---utils.py:425] : ", 7, None),
    ("INFO [20260511 02:59:23][rank-7/8][INFO ] [-------trainer.py:1207] : ", 7, None),
    ("[2025-11-07 08:15:00] [NODE-1(mi300-07)] [INFO] ", None, "mi300-07"),
    ("[NODE-?(mi300-07)] [WARN] ", None, "mi300-07"),
    ("task/0 [default0]:", 0, None),
    ("[rank0]:[rank0]:", 0, None),
    ("[default1]:[rank9]:", 9, None),
    ("3: [default1]:", 3, None),
    ("I0811 21:54:55.531340 138312345 metric_logger.py:226] ", None, None),
    ("W1120 23:30:08.820000 16891 torch/distributed/run.py:874] ", None, None),
    ("[1,mpirank:3,algo-2]<stdout>:", 3, "algo-2"),
    ("node07: ", None, "node07"),
    ("localhost: ", None, "localhost"),
    ("10.0.12.7: ", None, "10.0.12.7"),
    ("2026-01-02T03:04:05.678901234Z ", None, None),
    ("2026-01-02T03:04:05Z [rank2]:", 2, None),
    ("2026-01-02T03:04:05.678901234Z stdout F ", None, None),
    ("2026-01-02T03:04:05.678901234+02:00 stderr P [rank2]:", 2, None),
    ("(pretraining, pid=4112) ", None, None),
    ("(head, rank=0, pid=4503) ", None, None),
    ("(my-task.1, rank=1, pid=4503, ip=10.0.0.7) ", None, None),
    ("[pod/llama-master-0/pytorch] ", None, None),
    ("(head, rank=0, pid=4503) [rank3]:", 3, None),
]


class TestPrefixes:
    @pytest.mark.parametrize(("prefix", "rank", "host"), PREFIXES)
    def test_a_launcher_prefix_is_taken_off_and_read(self, prefix: str, rank: int | None, host: str | None) -> None:
        row = only(f"{prefix}step: 10  loss:  7.01\n".encode())
        assert (row["text"], row["rank"], row["host"]) == ("step: 10  loss:  7.01", rank, host)
        assert row["prefix"] == prefix

    @pytest.mark.parametrize(
        "text",
        [
            "step: 10",
            "[2024-04-06 03:02:12] iteration       71/     100 |",
            "[rank 2] Step: 1     | Loss: 10.9062",
            "10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: 1 / 2",
            "123456: a number too long for a rank",
            "error: nothing",
            "bf16: true",
            "version 1.2.3.4: a number",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05+00:00",
            "",
        ],
    )
    def test_text_that_only_begins_like_a_prefix_stays(self, text: str) -> None:
        assert only(text.encode() + b"\n")["text"] == text

    def test_a_colour_before_the_prefix_does_not_hide_it(self) -> None:
        assert only(b"\x1b[32m[rank1]:\x1b[0mhello\n")["rank"] == 1

    def test_a_rank_too_large_for_an_integer_is_unknown(self) -> None:
        assert only(b"[rank99999999999999999999]:x\n")["rank"] is None


class TestLongText:
    def test_a_line_over_the_limit_is_cut_before_any_pattern(self) -> None:
        row = only(b"step: 1 " + b"x" * 40_000 + b" out of memory\n")
        assert len(str(row["text"])) == lines.MAX_LINE_CHARS

    def test_a_literal_beyond_the_limit_makes_no_candidate(self) -> None:
        block = lines.split(0, b"\n" * 30 + b"x" * 20_000 + b"out of memory\n" + b"\n" * 30)
        assert cleaning.candidates(block, ["out of memory"]).is_empty()


class TestEdges:
    def test_the_first_and_last_lines_of_a_file(self) -> None:
        block = lines.split(0, b"".join(b"line %d\n" % i for i in range(1, 101)))
        assert cleaning.boundary_lines(block)["line_no"].to_list() == [*range(1, 21), *range(81, 101)]

    def test_each_file_of_a_block_has_its_own(self) -> None:
        block = lines.split_many([(0, b"a\n" * 100, 1), (1, b"b\n" * 3, 1)])
        assert cleaning.boundary_lines(block).group_by("source").len().sort("source").rows() == [(0, 40), (1, 3)]


class TestCandidates:
    def test_lines_with_any_literal_in_order(self) -> None:
        block = lines.split(0, b"loss 1\nhello\nstep 2 loss 2\n[x] step 3\n")
        assert cleaning.candidates(block, ["step", "loss"])["line_no"].to_list() == [1, 3, 4]

    def test_a_literal_is_no_pattern(self) -> None:
        block = lines.split(0, b"a+b\naab\n(c|d)\nc\n")
        assert cleaning.candidates(block, ["a+b", "(c|d)"])["text"].to_list() == ["a+b", "(c|d)"]

    def test_a_literal_that_holds_another_changes_nothing(self) -> None:
        block = lines.split(0, b"step: 1\nstep 2\nother\n")
        assert cleaning.candidates(block, ["step", "step: "]).equals(cleaning.candidates(block, ["step"]))

    def test_no_literals_no_candidates(self) -> None:
        assert cleaning.candidates(lines.split(0, b"x\n"), []).is_empty()

    def test_no_lines_no_candidates(self) -> None:
        assert cleaning.candidates(lines.split(0, b""), ["x"]).is_empty()
