"""What a renderer provides. One module per framework; this is the explicit list.

The framework's printing rules are stated twice on purpose: `printed_step` gives the values, `body` the text.
"""

from __future__ import annotations

from sweepscope.pipeline.simulate import prologue
from sweepscope.pipeline.simulate.renderers import megatron, nanotron, picotron, torchtitan
from sweepscope.pipeline.simulate.renderers.protocol import Renderer, Stated
from sweepscope.pipeline.simulate.truth import SimulatedRun

RENDERERS: dict[str, Renderer] = {
    renderer.framework: renderer
    for renderer in (nanotron.RENDERER, picotron.RENDERER, megatron.RENDERER, torchtitan.RENDERER)
}


def stated(run: SimulatedRun) -> Stated:
    """Columns of `runs` that the run's files say outright, with their values."""
    return {**RENDERERS[run.framework].stated(run), **prologue.stated(run)}
