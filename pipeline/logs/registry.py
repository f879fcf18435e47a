"""The explicit list of dialects. A new format is one module and one line here; order breaks ties."""

from __future__ import annotations

from sweepscope.pipeline.logs.dialect import Dialect, ResultTable
from sweepscope.pipeline.logs.dialects import (
    bare_progress_bar,
    colossalai,
    composer,
    gpt_neox,
    internevo,
    lightning,
    litgpt,
    maxtext,
    nanotron,
    nanotron_bench,
    openrlhf,
    picotron,
    torchtune,
)
from sweepscope.pipeline.logs.dialects.deepspeed import dialect as deepspeed
from sweepscope.pipeline.logs.dialects.huggingface import dialect as huggingface
from sweepscope.pipeline.logs.dialects.megatron import deepspeed as megatron_deepspeed
from sweepscope.pipeline.logs.dialects.megatron import dialect as megatron
from sweepscope.pipeline.logs.dialects.mlperf import dialect as mlperf
from sweepscope.pipeline.logs.dialects.nanogpt import dialect as nanogpt
from sweepscope.pipeline.logs.dialects.nemo import dialect as nemo
from sweepscope.pipeline.logs.dialects.torchtitan import dialect as torchtitan
from sweepscope.pipeline.logs.dialects.verl import dialect as verl

DIALECTS: tuple[Dialect, ...] = (
    picotron.DIALECT,
    nanotron.DIALECT,
    megatron.DIALECT,
    torchtitan.DIALECT,
    mlperf.DIALECT,
    maxtext.DIALECT,
    nanogpt.DIALECT,
    verl.DIALECT,
    colossalai.DIALECT,
    huggingface.TRAINER,
    huggingface.AXOLOTL,
    deepspeed.DIALECT,
    megatron_deepspeed.DIALECT,
    gpt_neox.DIALECT,
    composer.DIALECT,
    lightning.DIALECT,
    nemo.DIALECT,
    litgpt.DIALECT,
    internevo.DIALECT,
    torchtune.DIALECT,
    openrlhf.DIALECT,
    bare_progress_bar.DIALECT,
)

TABLES: tuple[ResultTable, ...] = (nanotron_bench.TABLE,)


def by_name(name: str) -> Dialect:
    """The built-in dialect of that name. Raises KeyError for an unknown one."""
    return {dialect.name: dialect for dialect in DIALECTS}[name]
