"""wordplay, the nanoGPT of Argonne's training courses (saforem2/wordplay); a part of the `nanogpt` dialect.

Formats: src/wordplay/trainer.py (`step=10 loss=3.22448 dt=0.28387 dtf=.. dtb=.. sps=.. sps_per_gpu=.. tps=1.84e+06
tps_per_gpu=230866 mfu=46.1191` behind the logger of ezpz; seconds, tokens of all and of one GPU, MFU in percent) and
__main__.py (the configuration as JSON); ezpz/dist.py (`WORLD_SIZE_IN_USE=8`). The last step may not be printed.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.extractors import extract_numbers, matched_settings, named_settings
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.text.line_templates import matching
from sweepscope.pipeline.text.quantities import NUMBER, divided
from sweepscope.pipeline.text.timestamps import timestamp

BEGINNING = r"step=[0-9]+ loss="
_NUMBERS = {
    "loss": rf"^step=\d+ loss=({NUMBER}) ",
    "step_time_s": rf" dt=({NUMBER}) ",
    "tokens_per_s": rf" tps=({NUMBER}) ",
    "tokens_per_s_per_gpu": rf" tps_per_gpu=({NUMBER}) ",
    "percent": rf" mfu=({NUMBER})\s*$",
}


def steps(bare: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of step lines (see `without_logger`); one that does not reach its MFU stays unparsed."""
    found = extract_numbers(matching(bare, f"^{BEGINNING}"), _NUMBERS, {"counter": r"^step=(\d+) "})
    is_whole = pl.col("percent").is_not_null()
    return conform(
        found.with_columns(
            step=pl.when(is_whole).then("counter"),
            mfu_logged=divided(pl.col("percent"), 100),
            ts=timestamp(pl.concat_str("prefix", "logged", ignore_nulls=True)),
            text="logged",
        ),
        STEP_FACTS,
    )


_NAMES = {
    "batch_size": "mbs",
    "block_size": "seq_len",
    "max_iters": "steps_planned",
    "n_layer": "num_layers",
    "n_head": "num_heads",
    "n_embd": "hidden_size",
    "gas": "gas",
}
SETTING_LITERALS = ("WORLD_SIZE_IN_USE=", *(f'"{name}": ' for name in _NAMES))


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the configuration, and the size of the world."""
    return pl.concat(
        [
            named_settings(lines, r'^\s+"(\w+)": (\d+),?\s*$', _NAMES, setting_source="argument_dump"),
            matched_settings(lines, [("num_gpus", r"\bWORLD_SIZE_IN_USE=(\d+)\b")]),
        ]
    )
