"""Fuzzed logs of every format: no crash, no hang, no broken law, and the tables pass their schemas.

At least BATCHES batches, and as many as fit in SWEEPSCOPE_FUZZ_S seconds (none unless set), from SWEEPSCOPE_FUZZ_SEED
(the same one unless set).
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.ingest.validate import validate
from sweepscope.schemas.registry import TABLES
from tests.paths import GOLDEN
from tests.pipeline.ingest_in_memory import tables_of
from tests.pipeline.logs import fuzz
from tests.properties import draws, stated_examples

BATCHES = 12
SECONDS = float(os.environ.get("SWEEPSCOPE_FUZZ_S", "0"))
SEED = int(os.environ.get("SWEEPSCOPE_FUZZ_SEED", "20261121"))


@pytest.mark.slow
def test_mutants_of_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = fuzz.seeds(GOLDEN)
    assert len(seeds) >= 15
    plain = {f"{place:02d}/train.log": seed for place, seed in enumerate(seeds)}
    plain_kinds = {kind for _, kind in fuzz.kinds(tables_of(plain), plain)}
    found = fuzz.fuzz(seeds, np.random.default_rng(SEED), batches=BATCHES, seconds=SECONDS, keep=tmp_path)
    with capsys.disabled():
        print(  # noqa: T201
            f"\n{found.mutants} mutants of {len(seeds)} logs gave {len(found.kinds - plain_kinds)} kinds of tables "
            f"beside the {len(plain_kinds)} of the logs; the slowest batch took {found.slowest_cpu_s:.1f} s"
        )
    assert len(found.kinds - plain_kinds) > BATCHES  # the mutations reach what the logs themselves do not


@pytest.mark.slow
@stated_examples(more=10)
@given(seed=st.integers(0, 2**32))
@example(seed=1)
@example(seed=SEED)
def test_what_mutants_yield_passes_its_schema(seed: int) -> None:
    """Rows that break a rule go to rejects; none makes the check itself fail."""
    rng, seeds = np.random.default_rng(seed), fuzz.seeds(GOLDEN)
    tables = tables_of({f"{place:02d}/train.log": fuzz.mutant(seeds, rng) for place in range(6)})
    tables["runs"] = complete_runs(tables["runs"]).runs
    for name in ("runs", "steps", "events", "settings"):
        result = validate(TABLES[name], TABLES[name].conform(tables[name]))
        assert result.valid.schema == TABLES[name].polars_schema
        assert result.valid.height + result.rejects["line_no"].len() >= tables[name].height


@pytest.mark.slow
@given(texts=st.lists(st.binary(max_size=2000), min_size=1, max_size=9))
@settings(max_examples=draws(40))
def test_any_bytes_are_read(texts: list[bytes]) -> None:
    files = {f"{place}/train.log": data for place, data in enumerate(texts)}
    fuzz.check(tables_of(files), files)


_NANOTRON = "[INFO|DP=0|PP=0|TP=0]: Config(general=GeneralArgs(project='x',\n"
_MEGATRON = "------------------------ arguments ------------------------\n  params_dtype ..... torch.bfloat16\n"
_TRAINER = "***** Running training *****\n  Num Epochs = 1\n"
_HUGE = {
    "nanotron peak": _NANOTRON
    + "[INFO|DP=0|PP=0|TP=0]: iteration: 1 / 10 | time_per_iteration_ms: 1K | lm_loss: 12.2 | "
    "cuda_max_memory_reserved: {n} | grad_norm: 1",
    "nanotron parameters": _NANOTRON + "[INFO|DP=0|PP=0|TP=0]: Total number of parameters: {n}T",
    "megatron parameters": _MEGATRON + "Total number of parameters in billions: {n}.00",
    "megatron shape": _MEGATRON + "  hidden_size ..... 8000000000000000000\n  num_layers ..... 8000000000000000000\n"
    "  num_attention_heads ..... 8\n  ffn_hidden_size ..... {n}\n  vocab_size ..... 8000000000000000000\n"
    "-------------------- end of arguments ---------------------",
    "trainer": _TRAINER
    + "  Total optimization steps = {n}\n{{'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': "
    "0.5}}\n{{'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': 1.0}}",
    "detector": _MEGATRON + "| MnRtt/Rnk: 1.2.3ms/8 | MxRtt/Rnk: 1.0ms/{n}",
    "score": _MEGATRON + "  Rank={n} Node=n Score=0.0.1",
    "failed rank": _MEGATRON
    + "Root Cause (first observed failure):\n[0]:\n  time      : 2025-06-12_22:45:44\n  host      : n\n"
    "  rank      : {n} (local_rank: 0)\n  exitcode  : -9 (pid: 79468)",
    "others' memory": _MEGATRON
    + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n}.00 GiB. GPU 0 has a total "
    "capacity of {n}.00 GiB of which {n}.00 GiB is free. Process {n} has {n}.00 GiB memory in use.",
}


def test_numbers_that_no_column_holds_are_unknown_and_no_error() -> None:
    """One such line would otherwise end the ingest of its whole batch."""
    logs = {f"{case}/train.log": text.format(n="9" * 30) + "\n" for case, text in _HUGE.items()}
    tables = tables_of({**logs, "beside.log": "[rank0]:torchtitan version: 0.2.1\n"})
    completed = complete_runs(tables["runs"]).runs
    assert set(completed["source_path"]) == {*logs, "beside.log"}
    assert "other" not in completed["framework"].to_list()
    validate(TABLES["runs"], TABLES["runs"].conform(completed))


def test_a_broken_law_is_noticed() -> None:
    tables = tables_of({"a.log": b"[rank0]:torchtitan version: 0.2.1\n"})
    fuzz.check(tables, {"a.log": b"one line\n"})
    twice = {**tables, "runs": pl.concat([tables["runs"], tables["runs"]])}
    with pytest.raises(AssertionError, match="share an id"):
        fuzz.check(twice, {"a.log": b"one line\n"})
    far = {**tables, "runs": tables["runs"].with_columns(line_no=pl.lit(99, pl.Int64))}
    with pytest.raises(AssertionError, match="no line 99"):
        fuzz.check(far, {"a.log": b"one line\n"})
