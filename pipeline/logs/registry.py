"""The explicit list of dialects. A new format is one module and one line here; order breaks ties.

One that a dialect file can describe is a file in `pipeline.logs.bundled` and one line there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import overload

from sweepscope.pipeline.logs import bundled
from sweepscope.pipeline.logs.dialect import Dialect, ResultTable
from sweepscope.pipeline.logs.dialects import (
    bare_progress_bar,
    colossalai,
    composer,
    gpt_neox,
    internevo,
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
from sweepscope.pipeline.logs.dialects.lightning import dialect as lightning
from sweepscope.pipeline.logs.dialects.megatron import deepspeed as megatron_deepspeed
from sweepscope.pipeline.logs.dialects.megatron import dialect as megatron
from sweepscope.pipeline.logs.dialects.mlperf import dialect as mlperf
from sweepscope.pipeline.logs.dialects.nanogpt import dialect as nanogpt
from sweepscope.pipeline.logs.dialects.nemo import dialect as nemo
from sweepscope.pipeline.logs.dialects.torchtitan import dialect as torchtitan
from sweepscope.pipeline.logs.dialects.verl import dialect as verl

IN_CODE: tuple[Dialect, ...] = (
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


class _Dialects(Sequence[Dialect]):
    """Those in code, then the bundled files, which are read when the first dialect is asked for: no command that reads
    no log waits for them."""

    @cached_property
    def _all(self) -> tuple[Dialect, ...]:
        return (*IN_CODE, *bundled.read())

    @overload
    def __getitem__(self, at: int) -> Dialect: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Dialect]: ...

    def __getitem__(self, at: int | slice) -> Dialect | Sequence[Dialect]:
        return self._all[at]

    def __len__(self) -> int:
        return len(self._all)


DIALECTS: Sequence[Dialect] = _Dialects()

TABLES: tuple[ResultTable, ...] = (nanotron_bench.TABLE,)


def by_name(name: str) -> Dialect:
    """The built-in dialect of that name. Raises KeyError for an unknown one."""
    return {dialect.name: dialect for dialect in DIALECTS}[name]
