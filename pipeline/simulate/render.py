"""Bytes of the files of a run."""

from __future__ import annotations

import random
from dataclasses import replace

from sweepscope.pipeline.simulate.console import LogLine, worker
from sweepscope.pipeline.simulate.failures import tail
from sweepscope.pipeline.simulate.noise import disturb, encode
from sweepscope.pipeline.simulate.prologue import prologue
from sweepscope.pipeline.simulate.renderers.protocol import cosmetics
from sweepscope.pipeline.simulate.renderers.registry import RENDERERS
from sweepscope.pipeline.simulate.truth import SimulatedRun


def render(run: SimulatedRun) -> dict[str, bytes]:
    """Files of the run's directory by name, in a fixed order: sidecars, log, and stderr where it is a separate file."""
    renderer = RENDERERS[run.framework]
    if run.unfinished is None:
        body = renderer.body(run)
    else:
        body = _cut(renderer.body(replace(run, exact=(*run.exact, run.unfinished))), cosmetics(run, "cut"))
    end = tail(run, renderer.script, cosmetics(run, "tail"))
    version = worker([f"NCCL version {run.nccl_version}"]) if run.nccl_version else []
    body = prologue(run, renderer.script) + version + body
    name = renderer.log_name(run)
    streams = {name: body, name.rsplit(".", 1)[0] + ".err": end} if run.stderr_apart else {name: body + end}
    noise_rng = cosmetics(run, "noise")
    files = {sidecar: text.encode() for sidecar, text in renderer.sidecars(run).items()}
    for stream, lines in streams.items():
        noisy = disturb(lines, run.noise, noise_rng, num_ranks=run.num_gpus, gpus_per_node=run.gpus_per_node)
        files[stream] = encode(noisy, crlf=run.noise.crlf)
    return files


# The first value after the step number in each dialect: a line cut before it has no value.
_FIRST_VALUES = ("Loss", "loss", "elapsed", "time_per_iteration")


def _cut(lines: list[LogLine], rng: random.Random) -> list[LogLine]:
    """`lines` with the last one, a step line, broken off somewhere before its loss and time."""
    text = lines[-1].text
    limit = min(at for at in map(text.find, _FIRST_VALUES) if at > 0)
    return [*lines[:-1], replace(lines[-1], text=text[: rng.randrange(1, limit)], ends=False)]
