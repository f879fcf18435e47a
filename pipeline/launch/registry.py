"""The frameworks that launch files can be written for: the explicit list."""

from __future__ import annotations

from sweepscope.pipeline.launch.framework import Framework
from sweepscope.pipeline.launch.frameworks.huggingface import AXOLOTL_TRAINER, HF_TRAINER
from sweepscope.pipeline.launch.frameworks.litgpt import LITGPT
from sweepscope.pipeline.launch.frameworks.megatron import BRIDGE, MEGATRON
from sweepscope.pipeline.launch.frameworks.nanotron import NANOTRON
from sweepscope.pipeline.launch.frameworks.picotron import PICOTRON
from sweepscope.pipeline.launch.frameworks.torchtitan import TORCHTITAN

FRAMEWORKS: dict[str, Framework] = {
    one.name: one for one in (NANOTRON, PICOTRON, TORCHTITAN, MEGATRON, BRIDGE, HF_TRAINER, LITGPT, AXOLOTL_TRAINER)
}
