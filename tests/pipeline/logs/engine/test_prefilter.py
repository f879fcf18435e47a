"""What is left of a block, and that reading what is left of many blocks together changes nothing."""

from __future__ import annotations

import itertools
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.engine.detect import DETECTION_LINES
from sweepscope.pipeline.logs.engine.prefilter import FilteredBlock, prefilter
from sweepscope.pipeline.logs.evidence import patterns
from sweepscope.pipeline.logs.registry import DIALECTS, by_name
from sweepscope.pipeline.simulate.generate import generate
from sweepscope.pipeline.simulate.render import render
from sweepscope.pipeline.text import lines
from tests.properties import stated_examples

STEP = b"Step: 1 | Loss: 2.5 | Tokens/s: 4K | Tokens/s/GPU: 1K | Tokens: 8K | MFU: 1.5% | Memory usage: 1GB\n"
NOISE = b"WARNING: a line that says nothing\n"


def filtered(data: bytes, first_line: int = 1, **options: object) -> FilteredBlock:
    return prefilter(lines.split(0, data, first_line), DIALECTS, **options)  # type: ignore[arg-type]


class TestSift:
    def test_only_lines_that_someone_reads_are_left(self) -> None:
        found = filtered(NOISE + STEP + NOISE + b"RuntimeError: CUDA out of memory. Tried to allocate 1 GiB\n")
        assert {name: frame["line_no"].to_list() for name, frame in found.candidates.items()} == {"picotron": [2]}
        assert found.evidence_lines["line_no"].to_list() == [4]
        assert found.last_lines.rows() == [(0, 4, 1, 1)]

    def test_a_file_whose_first_lines_tell_is_one_dialects_although_more_is_to_come(self) -> None:
        neox = b"[Rank 0] step=10, skipped=0, lr=[1e-05], mom=[0.9]\n"
        open_ended = filtered(STEP + neox, partial={0})
        assert not open_ended.candidates
        assert open_ended.undecided["line_no"].to_list() == [1, 2]
        assert set(filtered(STEP + neox + NOISE * DETECTION_LINES, partial={0}).candidates) == {"picotron"}
        assert set(filtered(neox + STEP, DETECTION_LINES + 1, partial={0}, known={0: "picotron"}).candidates) == {
            "picotron"
        }

    def test_each_file_of_a_block_goes_its_own_way(self) -> None:
        block = lines.split_many([(3, STEP, 1), (1, b"nothing\n", 1), (2, STEP * 2, 50), (7, STEP, 1)])
        found = prefilter(block, DIALECTS, partial={7}, known={2: "picotron"})
        assert found.candidates["picotron"].select("source", "line_no").sort("source", "line_no").rows() == [
            (2, 50),
            (2, 51),
            (3, 1),
        ]
        assert found.undecided.select("source", "line_no").rows() == [(7, 1)]
        assert found.last_lines.sort("source").rows() == [(1, 1, 0, 0), (2, 51, 2, 2), (3, 1, 1, 1), (7, 1, 1, 1)]

    def test_of_several_forms_of_lines_the_most_frequent_one_counts(self) -> None:
        bar, loss = b"train: 1%|x| 3/9 [00:01<00:02, 2.1it/s]\n", b"Train loss: 2.5\nTrain entropy: 0.1\n"
        assert filtered(bar * 7 + loss * 3).last_lines.rows() == [(0, 13, 7, 3)]

    def test_a_scale_of_the_loss_is_no_loss(self) -> None:
        assert filtered(b"OVERFLOW! loss scale: 65536, reducing\n" * 4).last_lines.rows() == [(0, 4, 4, 0)]

    def test_nothing_is_left_of_nothing(self) -> None:
        found = filtered(b"")
        assert (
            dict(found.candidates),
            found.evidence_lines.height,
            found.boundary_lines.height,
            found.last_lines.height,
        ) == ({}, 0, 0, 0)

    def test_what_is_left_can_be_kept_without_its_block(self) -> None:
        found = filtered(
            NOISE + STEP.replace(b"Step", b"\xc3\xa9 Step") + b"[rank3]: Traceback (most recent call last):\n"
        )
        kept = found.owned()
        assert kept.text_bytes == found.text_bytes > 0
        for one, other in ((found.evidence_lines, kept.evidence_lines), (found.boundary_lines, kept.boundary_lines)):
            assert_frame_equal(one, other)


class TestLiterals:
    def test_a_dialect_requires_the_literals_of_all_its_functions(self) -> None:
        silent = replace(by_name("picotron"), literals_by_function={"steps": ("Step:",), "settings": ("Size:",)})
        assert silent.required_literals == {"Step:", "Size:"}

    def test_a_function_without_literals_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="picotron: name the literals of settings in literals_by_function"):
            replace(by_name("picotron"), literals_by_function={"steps": ("Step:",)})

    def test_a_literal_of_an_event_in_another_line_is_no_event(self) -> None:
        text = b':::MLLOG {"key": "run_start"}\nmy own "run_start"\n"submission_platform", "value": "64xDGX H100"\n'
        rows = filtered(text, DETECTION_LINES, known={0: "mlperf"}, partial={0})
        facts = extract.read([rows], [by_name("mlperf")]).readings["mlperf"]
        assert facts.events["line_no"].to_list() == [DETECTION_LINES]
        assert facts.settings.is_empty()


@pytest.mark.slow
@stated_examples()
@given(seed=st.integers(0, 50), cuts=st.lists(st.integers(0, 2_000), max_size=6))
@example(seed=1, cuts=[3, 40, 41])
@example(seed=7, cuts=[0, 100])
def test_blocks_read_together_say_what_they_say_one_by_one(seed: int, cuts: list[int]) -> None:
    for run in generate(seed, 2):
        for name, data in render(run).items():
            if not name.endswith((".out", ".log", ".err")):
                continue
            rows = lines.split(0, data)
            places = sorted({0, rows.height, *(cut for cut in cuts if cut < rows.height)})
            blocks = [rows[a:b] for a, b in itertools.pairwise(places)]
            parts = [prefilter(block, DIALECTS, partial={0}) for block in blocks]
            one_by_one = extract.merge([extract.extract(block, DIALECTS, partial={0}) for block in blocks], DIALECTS)
            together = (
                extract.read([part.owned() for part in parts], DIALECTS) if parts else extract.merge([], DIALECTS)
            )
            assert together.dialect_of == one_by_one.dialect_of
            assert_frame_equal(together.spans, one_by_one.spans)
            for kind in ("steps", "peaks", "events"):
                assert_frame_equal(getattr(together.facts, kind), getattr(one_by_one.facts, kind))
            # A value that every step repeats is noted once per reading.
            said = [
                facts.settings.drop("line_no").unique().sort(pl.all()) for facts in (together.facts, one_by_one.facts)
            ]
            assert_frame_equal(*said)


def test_a_proof_is_kept_whoever_reads_the_file() -> None:
    proof = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.90 GiB\n"
    for options in ({}, {"partial": {0}}, {"known": {0: "picotron"}, "partial": {0}}):
        assert patterns.events(filtered(STEP + proof, **options).evidence_lines)["kind"].to_list() == [
            "exception",
            "oom",
        ]
