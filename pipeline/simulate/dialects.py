"""What a renderer provides. One module per framework; this is the explicit list.

The framework's printing rules are stated twice on purpose: `printed_step` gives the values, `body` the text.
"""

from __future__ import annotations

from pipeline.simulate import render_megatron, render_nanotron, render_picotron, render_torchtitan
from pipeline.simulate.renderer import Renderer

RENDERERS: dict[str, Renderer] = {
    renderer.framework: renderer
    for renderer in (
        render_nanotron.RENDERER,
        render_picotron.RENDERER,
        render_megatron.RENDERER,
        render_torchtitan.RENDERER,
    )
}
