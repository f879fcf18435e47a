"""What ms-swift prints around transformers' Trainer.

Formats: its arguments one a line (`sequence_parallel_size=2,`), and swift/utils/torch_utils.py
get_model_parameter_info (`model_parameter_info: Model: 7615.6165M Params (7615.6165M Trainable [100.0000%])`).
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting
from sweepscope.pipeline.logs.expressions import whole
from sweepscope.pipeline.logs.extractors import computed_settings, matched_settings
from sweepscope.pipeline.text.quantities import human

_RANKS = "arg:sequence_ranks"
_LINE = (
    (_RANKS, r"^sequence_parallel_size=([2-9]|[1-9]\d+),?\s*$"),
    ("model", r"^model=['\"]?(?:[\w.$~-]*/)*([A-Za-z][\w.-]*\d[bBmM]\b[\w.-]*)['\"]?,\s*$"),
)
_PARAMETERS = r"\bmodel_parameter_info: [\w.]+: ([\d.]+M) Params "

LITERALS = ("sequence_parallel_size=", "model=", "model_parameter_info: ")

SEQUENCE_RANKS = whole(_RANKS)
"""Processes that share one sequence (Ulysses), and so one batch; NULL where each has its own."""

COMBINED = (CombinedSetting("cp", SEQUENCE_RANKS, (_RANKS,)),)


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the model, its parameters, and the processes of a sequence."""
    params = human(pl.col("text").str.extract(_PARAMETERS))
    return pl.concat([matched_settings(lines, _LINE), computed_settings(lines, {"params": params})])
