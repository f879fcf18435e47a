"""Planned runs for tests: one with overrides, and random ones that a framework can run."""

from __future__ import annotations

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from sweepscope.pipeline.launch.framework import Framework
from sweepscope.pipeline.launch.planned import Planned
from sweepscope.pipeline.reference.models import find_model, shape_of

DENSE, EXPERTS = "Llama 3 8B", "Mixtral 8x7B"


def planned(**changes: Any) -> Planned:
    """A planned run of Llama 3 8B on two nodes of eight H100."""
    model = changes.pop("model", DENSE)
    row = find_model(model)
    assert row
    values: dict[str, Any] = {
        "name": "plan-0a1b2c-001",
        "model": model,
        "shape": shape_of(row),
        "accelerator": "H100-SXM-80GB",
        "num_nodes": 2,
        "gpus_per_node": 8,
        "seq_len": 4096,
        "dp": 8,
        "tp": 2,
        "pp": 1,
        "cp": 1,
        "ep": 1,
        "vpp": 1,
        "zero_stage": 0,
        "dp_replicate": 1,
        "mbs": 1,
        "gas": 4,
        "recompute": "none",
        "sequence_parallel": False,
        "pipeline_schedule": "1f1b",
        "steps": 20,
        "walltime_s": 900,
    }
    return Planned(**{**values, **changes})


@st.composite
def runs_of(draw: st.DrawFn, framework: Framework) -> Planned:
    """Any run that the framework can run: degrees are powers of two, the nodes hold eight ranks or all of one."""

    def degree(name: str, largest: int) -> int:
        return draw(st.sampled_from([2**power for power in range(largest + 1)])) if name in framework.degrees else 1

    tp, pp, cp = degree("tp", 3), degree("pp", 2), degree("cp", 2)
    dp = draw(st.sampled_from([1, 2, 4, 8, 16]))
    model = draw(st.sampled_from([DENSE, EXPERTS])) if framework.takes_moe else DENSE
    ep = draw(st.sampled_from([1, 2])) if "ep" in framework.degrees and model == EXPERTS and dp > 1 else 1
    vpp = degree("vpp", 1) if pp > 1 else 1
    ranks = dp * tp * pp * cp
    per_node = min(ranks, 8)
    is_sharded = dp * cp > 1
    stages = [stage for stage in framework.zero_stages if is_sharded or stage == 0] or [0]
    zero_stage = draw(st.sampled_from(stages))
    copies = degree("dp_replicate", 1) if zero_stage and dp > 2 else 1
    if framework.name == "litgpt":
        copies = ranks // per_node
    words = [word for word in framework.schedules if (word == "interleaved") == (vpp > 1) and word in ("1f1b", "afab")]
    run = planned(
        model=model,
        num_nodes=ranks // per_node,
        gpus_per_node=per_node,
        seq_len=draw(st.sampled_from([512, 2048, 8192])),
        dp=dp,
        tp=tp,
        pp=pp,
        cp=cp,
        ep=ep,
        vpp=vpp,
        zero_stage=zero_stage,
        dp_replicate=copies,
        mbs=draw(st.sampled_from([1, 2, 3, 8])),
        gas=draw(st.sampled_from([1, 2, 16])),
        recompute=draw(st.sampled_from(framework.recompute)),
        sequence_parallel=tp > 1 and draw(st.booleans()),
        pipeline_schedule="interleaved" if vpp > 1 else draw(st.sampled_from(words or ["1f1b"])),
        steps=draw(st.integers(2, 500)),
    )
    assume(framework.refusal(row_of(run)) is None)
    return run


def row_of(run: Planned) -> dict[str, Any]:
    """The columns of `runs` that a planned run states, as text."""
    shape = run.shape
    columns = {name: getattr(run, name) for name in Planned.__dataclass_fields__ if name not in ("shape", "steps")}
    return {
        **columns,
        "gbs": run.gbs,
        "num_gpus": run.num_gpus,
        "steps_planned": run.steps,
        "num_layers": shape.num_layers,
        "hidden_size": shape.hidden_size,
        "num_heads": shape.num_heads,
        "num_kv_heads": shape.num_kv_heads,
        "ffn_hidden_size": shape.ffn_hidden_size,
        "vocab_size": shape.vocab_size,
        "gated_mlp": shape.gated_mlp,
        "tie_word_embeddings": shape.tie_word_embeddings,
    }
