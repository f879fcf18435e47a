"""InternLM's InternEvo, and InternLM's own trainer before it had that name.

Formats: internlm/train/pipeline.py (2023: training_internlm.py, train.py) record_current_batch_training_metrics, one
line of `key=value` a step (commas between them in 2023, blanks since), behind either prefix of utils/logger.py;
initialize/launch.py (parallel sizes); solver/optimizer/hybrid_zero_optim.py (shares of the ranks of ZeRO).

Steps count from 0. `tgs` is tokens per second and GPU, of the step itself; `tflops` is per GPU. The global batch is
`micro_num` micro-batches a data-parallel rank. fwd_bwd_time leaves the optimizer out, so no step time is printed.
`grad_norm` is a number or one per parameter group, of which `0_default` holds the dense weights.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.expressions import whole
from sweepscope.pipeline.logs.extractors import computed_settings, extract_numbers, matched_settings, milestones
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.text.quantities import NUMBER
from sweepscope.pipeline.text.timestamps import timestamp

_LOOKS_LIKE = r"record_current_batch_training_metrics\b.*\btflops="
_RATE = r"tgs (tokens/gpu/second)="


def _field(label: str) -> str:
    """A value counts with what ends it: a key of the next version may begin with the same letters."""
    return rf"[\s,]{label}=({NUMBER})(?:[\s,]|$)"


_NUMBERS = {
    "loss": _field("loss"),
    "tflops_per_gpu_logged": rf"\btflops=({NUMBER})[\s,]",
    "tokens_per_s_per_gpu": _field(r"tgs \(tokens/gpu/second\)"),
    "learning_rate": _field("lr"),
    "grad_norm": rf"[\s,]grad_norm=(?:\{{'0_default': )?({NUMBER})[\s,}}]",
    "consumed_tokens": _field("num_consumed_tokens"),
}
_COUNTER = {"number": r"[\s,]step=(\d+)[\s,]", "complete": r"[\s,](num_consumed_tokens)=\d+[\s,]"}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of metric lines; one that does not reach its token count is cut and stays unparsed."""
    mine = lines.filter(pl.col("text").str.contains(_LOOKS_LIKE))
    rows = extract_numbers(mine, _NUMBERS, _COUNTER)
    return conform(
        rows.with_columns(
            ts=timestamp(pl.concat_str("prefix", "text", ignore_nulls=True)),
            step=pl.when(pl.col("complete").is_not_null()).then("number"),
        ),
        STEP_FACTS,
    )


_SIZES = "Distributed environment is initialized, "
_SPLIT = "Number of elements on ranks: ["
_PRINTED = {
    "dp": r"\bdata parallel size: (\d+)",
    "pp": r"\bpipeline parallel size: (\d+)",
    "tp": r"\btensor parallel size: (\d+)",
    "cp": r"\bcontext parallel size: (\d+)",
}


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of parallel sizes, accumulation, and whether ZeRO splits the optimizer."""
    text = pl.col("text")
    micro_batches = pl.when(text.str.contains(_RATE, literal=True)).then(text.str.extract(r"[\s,]micro_num=(\d+)[\s,]"))
    # A list of one is a single rank's share: nothing is split, or ZeRO's group has one member.
    is_split = text.str.contains(r"Number of elements on ranks: \[\d+, ")
    computed = computed_settings(lines, {"gas": micro_batches, "zero_stage": pl.when(is_split).then(pl.lit("1"))})
    return pl.concat([computed, matched_settings(lines, _PRINTED.items()), environment.settings(lines)])


# Every dimension is printed; a data-parallel rank is a whole model (core/context/process_group_initializer.py).
COMBINED = (CombinedSetting("num_gpus", whole("dp") * whole("pp") * whole("tp"), ("dp",), setting_source="derived"),)


DIALECT = Dialect(
    name="internevo",
    module=__name__,
    signature_literals=(_RATE, "in record_current_batch_training_metrics", "INFO launch.py", "hybrid_zero_optim.py"),
    steps=steps,
    settings=settings,
    events=milestones(launch=_SIZES),
    combined=COMBINED,
    literals_by_function={
        "steps": ("tflops=",),
        "settings": (_RATE, _SIZES, _SPLIT, *environment.LITERALS),
        "events": (_SIZES,),
    },
)
