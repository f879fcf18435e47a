"""What is left of a block, and that reading what is left of many blocks together changes nothing."""

from __future__ import annotations

import itertools
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from sweepscope.pipeline.logs.dialect import Dialect, no_facts
from sweepscope.pipeline.logs.engine import extract
from sweepscope.pipeline.logs.engine.detect import SIGN_LINES
from sweepscope.pipeline.logs.engine.prefilter import Sifted, sift
from sweepscope.pipeline.logs.evidence import patterns
from sweepscope.pipeline.logs.registry import DIALECTS, by_name
from sweepscope.pipeline.simulate.generate import generate
from sweepscope.pipeline.simulate.render import render
from sweepscope.pipeline.text import lines

STEP = b"Step: 1 | Loss: 2.5 | Tokens/s: 4K | Tokens/s/GPU: 1K | Tokens: 8K | MFU: 1.5% | Memory usage: 1GB\n"
NOISE = b"WARNING: a line that says nothing\n"


def sifted(data: bytes, first_line: int = 1, **options: object) -> Sifted:
    return sift(lines.split(0, data, first_line), DIALECTS, **options)  # type: ignore[arg-type]


class TestSift:
    def test_only_lines_that_someone_reads_are_left(self) -> None:
        found = sifted(NOISE + STEP + NOISE + b"RuntimeError: CUDA out of memory. Tried to allocate 1 GiB\n")
        assert {name: frame["line_no"].to_list() for name, frame in found.candidates.items()} == {"picotron": [2]}
        assert found.proofs["line_no"].to_list() == [4]
        assert found.ends.rows() == [(0, 4)]

    def test_a_file_whose_first_lines_tell_is_one_dialects_although_more_is_to_come(self) -> None:
        neox = b"[Rank 0] step=10, skipped=0, lr=[1e-05], mom=[0.9]\n"
        assert set(sifted(STEP + neox, partial={0}).candidates) > {"picotron", "deepspeed"}
        assert set(sifted(STEP + neox + NOISE * SIGN_LINES, partial={0}).candidates) == {"picotron"}
        assert set(sifted(neox + STEP, SIGN_LINES + 1, partial={0}, known={0: "picotron"}).candidates) == {"picotron"}

    def test_each_file_of_a_block_goes_its_own_way(self) -> None:
        block = lines.split_many([(3, STEP, 1), (1, b"nothing\n", 1), (2, STEP * 2, 50), (7, STEP, 1)])
        found = sift(block, DIALECTS, partial={7}, known={2: "picotron"})
        assert found.candidates["picotron"].select("source", "line_no").sort("source", "line_no").rows() == [
            (2, 50),
            (2, 51),
            (3, 1),
            (7, 1),
        ]
        assert found.ends.sort("source").rows() == [(1, 1), (2, 51), (3, 1), (7, 1)]

    def test_nothing_is_left_of_nothing(self) -> None:
        found = sifted(b"")
        assert (dict(found.candidates), found.proofs.height, found.edges.height, found.ends.height) == ({}, 0, 0, 0)

    def test_what_is_left_can_be_kept_without_its_block(self) -> None:
        found = sifted(
            NOISE + STEP.replace(b"Step", b"\xc3\xa9 Step") + b"[rank3]: Traceback (most recent call last):\n"
        )
        kept = found.owned()
        assert kept.text_bytes == found.text_bytes > 0
        for one, other in ((found.proofs, kept.proofs), (found.edges, kept.edges)):
            assert_frame_equal(one, other)


class TestNeeded:
    @pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
    def test_every_function_finds_its_own_literals_among_the_needed(self, dialect: Dialect) -> None:
        assert dialect.needed == set(dialect.anchors) or dialect.needed >= {
            literal for literals in dialect.narrowed.values() for literal in literals
        }

    def test_a_function_without_literals_of_its_own_needs_every_anchor(self) -> None:
        picotron = by_name("picotron")
        assert picotron.needed < set(picotron.anchors)
        silent = replace(picotron, narrowed={"steps": ("Step:",)})
        assert silent.needed == set(picotron.anchors)  # its settings are handed every line
        assert replace(silent, settings=Dialect.__dataclass_fields__["settings"].default).needed == {"Step:"}
        assert replace(silent, settings=no_facts(pl.Schema({}))).needed == set(picotron.anchors)

    def test_a_needed_literal_may_stand_in_lines_without_an_anchor(self) -> None:
        mlperf = by_name("mlperf")
        assert not mlperf.is_anchored
        said = b':::MLLOG {"key": "run_start"}\nmy own "run_start"\n'
        rows = sifted(said, SIGN_LINES, known={0: "mlperf"}, partial={0}).candidates["mlperf"]
        assert rows["line_no"].to_list() == [SIGN_LINES]


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 50), cuts=st.lists(st.integers(0, 2_000), max_size=6))
def test_blocks_read_together_say_what_they_say_one_by_one(seed: int, cuts: list[int]) -> None:
    for run in generate(seed, 3):
        for name, data in render(run).items():
            if not name.endswith((".out", ".log", ".err")):
                continue
            rows = lines.split(0, data)
            places = sorted({0, rows.height, *(cut for cut in cuts if cut < rows.height)})
            blocks = [rows[a:b] for a, b in itertools.pairwise(places)]
            parts = [sift(block, DIALECTS, partial={0}) for block in blocks]
            one_by_one = extract.merge([extract.extract(block, DIALECTS, partial={0}) for block in blocks], DIALECTS)
            together = (
                extract.read([part.owned() for part in parts], DIALECTS) if parts else extract.merge([], DIALECTS)
            )
            assert together.dialect_of == one_by_one.dialect_of
            assert_frame_equal(together.spans, one_by_one.spans)
            for kind in ("steps", "gauges", "events"):
                assert_frame_equal(getattr(together.facts, kind), getattr(one_by_one.facts, kind))
            # A value that every step repeats is noted once per reading.
            said = [
                facts.settings.drop("line_no").unique().sort(pl.all()) for facts in (together.facts, one_by_one.facts)
            ]
            assert_frame_equal(*said)


def test_a_proof_is_kept_whoever_reads_the_file() -> None:
    proof = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.90 GiB\n"
    for options in ({}, {"partial": {0}}, {"known": {0: "picotron"}, "partial": {0}}):
        assert patterns.events(sifted(STEP + proof, **options).proofs)["kind"].to_list() == ["exception", "oom"]
