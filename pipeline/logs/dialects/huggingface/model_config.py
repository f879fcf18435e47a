"""The shape of the model from the configuration that transformers prints while it loads one.

Format: transformers/configuration_utils.py: `Model config Qwen2Config {` and below it the JSON of `config.json`, one
field a line; LLaMA-Factory shows it by default. Fields are those of `sidecars.model_file`. Deeper ones are of a part of
the model: an encoder's of images, say.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting
from sweepscope.pipeline.logs.expressions import whole
from sweepscope.pipeline.logs.extractors import named_settings
from sweepscope.pipeline.logs.sidecars.model_file import GATED, NAMES

_FIELD = r'^ {2,3}"(\w+)": "?([\w.-]+)"?,?\s*$'
_PATH = r'^ {2,3}"(_name_or_path)": "([\w-][\w.-]*/[\w.-]+)",?\s*$'
_SHAPE = {name: column for column, names in NAMES.items() for name in names}
_WORDS = {
    "hidden_act": "arg:hidden_act",
    "activation_function": "arg:hidden_act",
    "tie_word_embeddings": "tie_word_embeddings",
}

LITERALS = tuple(f'  "{name}": ' for name in (*_SHAPE, *_WORDS, "_name_or_path"))


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the fields; what is no number in place of one is left out."""
    found = named_settings(lines, _FIELD, _SHAPE | _WORDS, setting_source="argument_dump")
    is_shape = pl.col("name").is_in(list(NAMES))
    return pl.concat(
        [
            found.filter(~is_shape | pl.col("value").str.contains(r"^[1-9]\d*$")),
            named_settings(lines, _PATH, {"_name_or_path": "model"}, setting_source="argument_dump"),
        ]
    )


COMBINED = (
    CombinedSetting("gated_mlp", pl.when(pl.col("arg:hidden_act").is_in(GATED)).then(pl.lit("true"))),
    # Mixtral has no other layers.
    CombinedSetting(
        "expert_ffn_hidden_size",
        pl.when(pl.col("num_experts").is_not_null() & pl.col("expert_ffn_hidden_size").is_null()).then(
            whole("ffn_hidden_size")
        ),
        ("num_experts",),
    ),
)
