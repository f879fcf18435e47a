"""A log that was cut inside its configuration may know less than the whole one, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sweepscope.schemas.columns.shared import LAYOUT, MODEL
from tests.paths import GOLDEN
from tests.pipeline.ingest_in_memory import tables_of

_CONFIGURED = {*LAYOUT, *MODEL} - {"layout", "model", "params", "active_params", "variant"}


def configurations(logs: Sequence[str]) -> list[dict[str, object]]:
    """What is known of the layout and model of each log's first attempt, all read as one batch."""
    runs = tables_of({f"{place:04d}.log": log for place, log in enumerate(logs)})["runs"]
    first = {row["source_path"]: row for row in runs.sort("line_no", descending=True).iter_rows(named=True)}
    rows = (first.get(f"{place:04d}.log", {}) for place in range(len(logs)))
    return [{name: row[name] for name in row if name in _CONFIGURED and row[name] is not None} for row in rows]


def configuration(log: str) -> dict[str, object]:
    return configurations([log])[0]


def golden(case: str, first: str = "", last: str | None = None) -> str:
    """The log of a golden case from the line that holds `first` to before the one that holds `last`."""
    folder = GOLDEN / case
    (log,) = (path for path in folder.iterdir() if path.name != "expected.json")
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    begin = next(place for place, line in enumerate(lines) if first in line)
    end = next((place for place, line in enumerate(lines) if last and last in line and place > begin), len(lines))
    return "".join(lines[begin:end])


WHOLE = {
    "megatron": golden("megatron/two_runs_2025", "using world size", "seq-length 8192"),
    "megatron-deepspeed": golden("megatron-deepspeed/two_runs_tgs"),
    "nanotron": golden("nanotron/config_2025_samples"),
    "torchtitan": golden("torchtitan/mesh_2025_coloured"),
}


@pytest.mark.slow
@pytest.mark.parametrize("framework", WHOLE)
def test_a_log_cut_behind_any_line_knows_nothing_else(framework: str) -> None:
    lines = WHOLE[framework].splitlines(keepends=True)
    *cuts, known = configurations(["".join(lines[:number]) for number in range(1, len(lines) + 1)])
    assert len(known) > 5
    wrong = {
        number: {name: (value, known.get(name)) for name, value in cut.items() if known.get(name) != value}
        for number, cut in enumerate(cuts, 1)
        if not cut.items() <= known.items()
    }
    assert not wrong


DUMP = golden("megatron/two_runs_2025", "using world size", "setting number")


def test_the_end_line_makes_what_a_dump_leaves_out_a_fact() -> None:
    dense = "\n".join(
        line for line in DUMP.splitlines() if not any(name in line for name in ("swiglu", "group_query", "untie_"))
    )
    assert configuration(dense) | {"gated_mlp": False, "tie_word_embeddings": True} == configuration(dense)
    before_the_end = configuration(dense.replace("end of arguments", "..."))
    assert not {"gated_mlp", "tie_word_embeddings"} & before_the_end.keys()


def test_a_logged_step_tells_that_everything_before_it_was_printed() -> None:
    """Megatron-Bridge and Primus close no dump."""
    step = (
        " [2025-02-03 04:05:10] iteration       10/      20 | consumed samples:          640 | elapsed time per iteration "
        "(ms): 900.0 | learning rate: 1.0E-05 | global batch size:    64 | lm loss: 9.5E+00 | loss scale: 1.0 |\n"
    )
    dump = "  hidden_size ..... 4096\n  num_attention_heads ..... 32\n  params_dtype ..... torch.bfloat16\n"
    head = (
        "using world size: 8, data-parallel size: 4, tensor-model-parallel size: 2, pipeline-model-parallel size: 1\n"
    )
    assert "gated_mlp" not in configuration(head + dump)
    assert configuration(head + dump + step)["gated_mlp"] is False


TITAN = "[rank0]:[titan] 2026-05-19 19:35:01,730 - root - INFO - "
MESH = (
    f"{TITAN}Starting job: Llama 3 training\n{TITAN}Building device mesh with parallelism: pp=2, dp_replicate=2, "
    "dp_shard=4, cp=2, tp=2, ep=2"
)


def test_half_a_mesh_line_gives_no_dimension_of_one() -> None:
    known = {"pp": 2, "dp": 8, "cp": 2, "tp": 2, "ep": 2, "zero_stage": 2}
    *cuts, whole = configurations([MESH[:place] for place in range(MESH.index("parallelism"), len(MESH) + 1)])
    assert {name: whole[name] for name in known} == known
    wrong = [cut for cut in cuts if not {name: cut[name] for name in cut if name in known}.items() <= known.items()]
    assert not wrong
    assert {"pp": 2} in [{name: cut[name] for name in cut if name in known} for cut in cuts]


def test_a_mesh_of_before_expert_parallelism_is_whole_without_it() -> None:
    said = configuration(MESH.removesuffix(", ep=2"))
    assert (said["tp"], said["dp"], said.get("ep")) == (2, 8, None)


NANOTRON = "01/27/2025 15:49:39 [INFO|DP=0|PP=0|TP=0]: {}\n"


def test_context_parallelism_is_one_only_when_the_dump_went_past_it() -> None:
    section = NANOTRON.format("Config(general=GeneralArgs(project='sweep',")
    section += NANOTRON.format("       parallelism=ParallelismArgs(dp=2,") + NANOTRON.format("       pp=2,")
    assert "cp" not in configuration(section)
    past = section + NANOTRON.format("       tokens=TokensArgs(sequence_length=4096,")
    assert configuration(past)["cp"] == 1
    assert configuration(section + NANOTRON.format("       context_parallel_size=4,"))["cp"] == 4
