"""The map: which dialect reads a file, and that nothing hangs on how it was cut or what any byte is."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine import cleaning, read_lines
from sweepscope.pipeline.logs.engine import extract as engine
from sweepscope.pipeline.logs.engine.detect import DETECTION_LINES
from sweepscope.pipeline.logs.engine.prefilter import all_literals
from sweepscope.pipeline.logs.evidence import patterns
from sweepscope.pipeline.logs.facts import EVENT_FACTS, PEAK_FACTS, SETTING_FACTS, STEP_FACTS, Facts
from sweepscope.pipeline.logs.registry import DIALECTS, by_name
from sweepscope.pipeline.simulate.generate import FRAMEWORKS, generate
from sweepscope.pipeline.simulate.render import render
from sweepscope.pipeline.text import lines
from sweepscope.schemas.registry import TABLES
from sweepscope.schemas.vocab import EVENT_KIND, FRAMEWORK, SETTING_SOURCE
from tests.pipeline.ingest_in_memory import tables_of
from tests.properties import draws


def extract(text: str | bytes, **options: object) -> engine.Extract:
    data = text.encode() if isinstance(text, str) else text
    return engine.extract(lines.split(0, data), DIALECTS, **options)  # type: ignore[arg-type]


class TestDetection:
    def test_no_lines_no_dialect_no_facts(self) -> None:
        found = extract("")
        assert found.dialect_of == {}
        assert found.facts.steps.is_empty()
        assert found.spans.is_empty()

    def test_text_without_a_signature_has_none(self) -> None:
        assert extract("step: 1\niteration 7\nloss\n").dialect_of == {}

    def test_the_most_distinct_signatures_win(self) -> None:
        text = "| Tokens/s/GPU:\n" * 50 + "[after training is done]\n- arguments -\n"
        assert extract(text).dialect_of == {0: "megatron"}

    def test_then_the_most_hits(self) -> None:
        assert extract("Tokens per step:\n" + "[after training is done]\n" * 2).dialect_of == {0: "megatron"}

    def test_the_whole_file_decides_not_its_first_block(self) -> None:
        first, second = "Tokens per step: 1K\n", "[after training is done]\n- arguments -\n"
        parts = [
            engine.extract(lines.split(0, data.encode(), line), DIALECTS, partial={0})
            for data, line in ((first, 1), (second, 2))
        ]
        assert engine.merge(parts, DIALECTS).dialect_of == {0: "megatron"}
        assert engine.merge(parts[:1], DIALECTS).dialect_of == {0: "picotron"}

    def test_early_signs_outweigh_all_later_ones(self) -> None:
        later = "\n" * DETECTION_LINES + "[after training is done]\n- arguments -\n"
        assert extract("Tokens per step: 1K" + later).dialect_of == {0: "picotron"}
        assert extract(later).dialect_of == {0: "megatron"}

    def test_a_dialect_is_settled_once_no_later_block_can_change_it(self) -> None:
        text = "Tokens per step: 1K\n"
        assert extract(text, partial={0}).decided == {}
        assert extract(text + "\n" * DETECTION_LINES, partial={0}).decided == {0: "picotron"}
        assert extract("\n" * DETECTION_LINES + text, partial={0}).decided == {}

    def test_a_block_alone_does_not_settle_what_an_earlier_one_said(self) -> None:
        first, second = "[after training is done]\n- arguments -\n", "Tokens per step: 1K\n" + "\n" * DETECTION_LINES
        parts = [
            engine.extract(lines.split(0, data.encode(), line), DIALECTS, partial={0})
            for data, line in ((first, 1), (second, 3))
        ]
        assert parts[1].decided == {0: "picotron"}
        assert engine.decided_by(parts, DIALECTS) == {0: "megatron"}

    def test_a_settled_file_is_read_by_its_dialect_alone(self) -> None:
        line = "[Rank 0] step=10, skipped=0, lr=[1e-05], mom=[0.9]\nStep: 1 | Loss: 2.5 | Tokens/s/GPU: 1K | x\n"
        block = lines.split(0, line.encode(), DETECTION_LINES + 5)
        assert len(engine.extract(block, DIALECTS, partial={0}).readings) > 1
        assert list(engine.extract(block, DIALECTS, partial={0}, known={0: "picotron"}).readings) == ["picotron"]

    def test_each_file_of_a_block_has_its_own(self) -> None:
        block = lines.split_many(
            [(4, b"Tokens per step: 1K\n", 1), (2, b"[after training is done]\n", 1), (9, b"x\n", 1)]
        )
        assert engine.extract(block, DIALECTS).dialect_of == {2: "megatron", 4: "picotron"}

    def test_evidence_needs_no_dialect(self) -> None:
        block = lines.split(0, b"RuntimeError: CUDA out of memory. Tried to allocate 1 GiB\n")
        found = engine.extract(block, DIALECTS)
        assert found.dialect_of == {}
        assert set(found.facts.events["kind"]) == {"oom", "exception"}

    @pytest.mark.slow
    @pytest.mark.parametrize("framework", FRAMEWORKS)
    def test_every_simulated_log_is_recognised(self, framework: str) -> None:
        for run in generate(11, 6, frameworks=(framework,)):
            logs = [data for name, data in render(run).items() if name.endswith((".out", ".log"))]
            assert any(framework in extract(data).dialect_of.values() for data in logs), run.path


class TestMerge:
    def test_nothing_merges_to_nothing(self) -> None:
        whole = engine.merge([], DIALECTS)
        assert whole.dialect_of == {}
        assert whole.facts.events.schema == EVENT_FACTS

    def test_a_file_that_failed_late_leaves_nothing_behind(self) -> None:
        block = lines.split_many(
            [(0, b"Tokens per step: 1K\nCUDA error: out of memory\n", 1), (1, b"Tokens per step: 1K\n", 1)]
        )
        left = engine.extract(block, DIALECTS).without({0})
        assert left.dialect_of == {1: "picotron"}
        assert left.facts.events.is_empty()

    def test_the_edges_of_a_file_are_not_those_of_its_blocks(self) -> None:
        stamped = [b"2026-01-01 00:00:%02d x\n" % (i % 60) for i in range(200)]
        parts = [
            engine.extract(lines.split(0, b"".join(stamped[at : at + 50]), at + 1), DIALECTS, partial={0})
            for at in range(0, 200, 50)
        ]
        spans = engine.merge(parts, DIALECTS).spans
        assert spans["line_no"].to_list() == [*range(1, 21), *range(181, 201)]


class TestDialects:
    def test_names_are_frameworks_and_unique(self) -> None:
        names = [dialect.name for dialect in DIALECTS]
        assert len(set(names)) == len(names)
        assert set(names) <= set(FRAMEWORK)

    def test_by_name_knows_each_and_no_other(self) -> None:
        assert [by_name(dialect.name) for dialect in DIALECTS] == list(DIALECTS)
        with pytest.raises(KeyError):
            by_name("pytorch-lightning")

    @pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
    def test_no_lines_give_no_facts_of_the_right_shape(self, dialect: Dialect) -> None:
        empty = cleaning.clean(lines.split(0, b""))
        facts = read_lines.facts_of_lines(dialect, empty)
        for frame, schema in zip(
            (facts.steps, facts.settings, facts.peaks, facts.events),
            (STEP_FACTS, SETTING_FACTS, PEAK_FACTS, EVENT_FACTS),
            strict=True,
        ):
            assert frame.is_empty()
            assert frame.schema == schema

    @pytest.mark.slow
    def test_facts_use_the_vocabularies(self) -> None:
        facts = [extract(data).facts for run in generate(5, 24) for data in render(run).values()]
        whole = Facts.concat(facts)
        assert set(whole.events["kind"]) <= set(EVENT_KIND)
        assert set(whole.settings["setting_source"]) <= set(SETTING_SOURCE)
        columns = set(TABLES["runs"].column_names)
        assert {name for name in whole.settings["name"] if not name.startswith("arg:")} <= columns
        assert set(whole.peaks["name"]) <= columns


class TestSidecars:
    @pytest.mark.parametrize(
        "sidecar",
        [s for d in DIALECTS for s in d.sidecars],
        ids=lambda s: s.pattern,
    )
    @settings(max_examples=draws(60))
    @given(
        text=st.one_of(
            st.text(max_size=80),
            st.recursive(
                st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
                lambda inner: (
                    st.lists(inner, max_size=3)
                    | st.dictionaries(
                        st.sampled_from(["distributed", "model", "training", "tp_size", "name", "use_cpu", "x"]),
                        inner,
                        max_size=4,
                    )
                ),
                max_leaves=12,
            ).map(json.dumps),
        )
    )
    def test_any_text_gives_settings_or_a_value_error(self, sidecar: object, text: str) -> None:
        try:
            found = sidecar.read(text)  # type: ignore[attr-defined]
        except ValueError:
            return
        assert all(isinstance(name, str) and isinstance(value, str) for name, value in found.items())


@pytest.mark.slow
def test_an_anchor_is_in_every_line_that_gives_a_step() -> None:
    for run in generate(3, 12, noise=False):
        for data in render(run).values():
            found = extract(data)
            texts = lines.split(0, data).join(found.facts.steps.select("line_no").unique(), on="line_no")["text"]
            assert texts.str.contains_any(list(all_literals(DIALECTS))).all()


def test_what_few_lines_tell_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many step lines stand between them: a pass over lines has a price of its own."""
    monkeypatch.setattr(read_lines, "READ_LINES", 4)
    picotron = by_name("picotron")
    read: list[list[int]] = []

    def settings_of(rows: pl.DataFrame) -> pl.DataFrame:
        read.append(rows["line_no"].to_list())
        return picotron.settings(rows)

    steps = [PIECES[0].replace("Step: 1 ", f"Step: {step:<2d}") for step in range(1, 11)]
    text = "\n".join(["Number of parameters: 1.24B", *steps, "Number of parameters: 1.30B"])
    dialect = replace(picotron, settings=settings_of)
    found = engine.extract(lines.split(0, text.encode()), (dialect,)).readings["picotron"]
    assert read == [[1, 12]]
    assert found.settings["value"].to_list() == ["1240000000", "1300000000"]
    assert found.steps["step"].to_list() == list(range(1, 11))


def test_every_evidence_pattern_has_a_known_kind_and_is_reachable_through_its_literals() -> None:
    assert {pattern.kind for pattern in patterns.PATTERNS} <= set(EVENT_KIND)
    for pattern in patterns.PATTERNS:
        assert set(pattern.literals) <= set(patterns.LITERALS)


PIECES = [
    "Step: 1     | Loss: 10.9062 | Global batch size:   2.05K | Tokens/s:  199.02 | Tokens/s/GPU:   24.88 | "
    "Tokens:   2.05K | MFU:  0.01% | Memory usage:   1.75GB",
    " [2024-04-06 03:02:12] iteration       71/     100 | consumed samples:         9088 | elapsed time per iteration "
    "(ms): 5361.6 | throughput per GPU (TFLOP/s/GPU): 243.6 | learning rate: 1E-5 | global batch size:   128 | "
    "lm loss: 8.5E+00 | loss scale: 1.0 | grad norm: 1.2 | number of skipped iterations:   0 |",
    "[rank0]:[titan] 2026-05-19 19:35:28,730 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  7.01706  grad_norm: 31.37  "
    "memory: 169.20GiB(94.87%)  tps: 9,646  tflops: 812.70  mfu: 36.12%\x1b[39m",
    "10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: 3 / 9 | consumed_tokens: 85.8G | "
    "elapsed_time_per_iteration_ms: 11.5K | tokens_per_sec: 22.8K | global_batch_size: 64 | lm_loss: 2.2 | lr: 1e-5",
    "  tensor_model_parallel_size ...................... 8",
    "[rank0]:[titan] 2026-05-19 19:35:28,730 - root - INFO - Building 2-D device mesh with ['pp', 'dp'], [2, 4]",
    "Memory usage: 64.15MiB. Peak allocated 309.29MiB. Peak reserved: 496.00MiB",
    "[Rank 0] (after 1 iterations) memory (MB) | allocated: 1.0 | max allocated: 2.0 | reserved: 3.0 | max reserved: 4.0",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.90 GiB. GPU 0 has a total capacity of 178.35 GiB",
    "Number of parameters: 1.5B",
    "Traceback (most recent call last):",
]
ODD = [
    "nan",
    "inf",
    "-1",
    "1e999",
    "9" * 40,
    "",
    "N/A",
    "0",
    "0.00",
    "\x00",
    "\x1b[",
    "\r",
    "|",
    "é",
    "\U0001f600",
    "%",
    "(",
    "\\",
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A line that looks real, with a piece replaced, cut out, doubled or blown up."""
    text = draw(st.sampled_from(PIECES))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 25)))
        text = text[:start] + draw(st.sampled_from(ODD) | st.text(max_size=5)) + text[end:]
    return text.encode("utf-8", errors="replace") + draw(st.sampled_from([b"\n", b"\r", b"\r\n", b"", b"\xff\n"]))


ANYTHING = st.lists(st.one_of(mutated(), st.binary(max_size=60)), max_size=25).map(b"".join)
_BOUNDED = settings(max_examples=draws(60), suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.slow
@_BOUNDED
@given(data=ANYTHING)
def test_no_bytes_crash_a_dialect(data: bytes) -> None:
    found = extract(data, partial={0})  # every dialect reads every line that has its anchors
    for facts in found.readings.values():
        assert facts.steps.schema == STEP_FACTS
        assert facts.settings["value"].null_count() == 0


@pytest.mark.slow
@_BOUNDED
@given(log=ANYTHING, stderr=ANYTHING, config=st.binary(max_size=40))
def test_no_files_crash_the_fold(log: bytes, stderr: bytes, config: bytes) -> None:
    files = {"r/log_1.out": log, "r/log_1.err": stderr, "r/config.json": config, "r/status.txt": config}
    tables = tables_of(files)
    assert tables["files"].height == 4
    assert tables["runs"]["run_id"].is_unique().all()
    assert tables["rejects"].schema == pl.Schema(TABLES["rejects"].polars_schema)
