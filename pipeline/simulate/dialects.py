"""What a renderer provides. One module per framework; this is the explicit list.

The framework's printing rules are stated twice on purpose: `printed_step` gives the values, `body` the text.
"""

from __future__ import annotations

from pipeline.simulate import prologue, render_megatron, render_nanotron, render_picotron, render_torchtitan
from pipeline.simulate.renderer import Renderer, Stated
from pipeline.simulate.truth import SimulatedRun

RENDERERS: dict[str, Renderer] = {
    renderer.framework: renderer
    for renderer in (
        render_nanotron.RENDERER,
        render_picotron.RENDERER,
        render_megatron.RENDERER,
        render_torchtitan.RENDERER,
    )
}


def stated(run: SimulatedRun) -> Stated:
    """Columns of `runs` that the run's files say outright, with their values."""
    return {**RENDERERS[run.framework].stated(run), **prologue.stated(run)}
