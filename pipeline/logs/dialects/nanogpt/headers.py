"""What nanoGPT, build-nanogpt, nanochat and modded-nanogpt print before their first step.

Formats: nanoGPT train.py (`defaulting to vocab_size of GPT-2 to 50304 (50257 rounded up for efficiency)`, `found
vocab_size = 65`) and model.py (`num decayed parameter tensors: 50, with 124,318,720 parameters`); build-nanogpt
train_gpt2.py (`total desired batch size: 524288`, in tokens; `using device: cuda` without DDP only); nanochat
scripts/base_train.py and chat_sft.py (`Tokens / micro-batch / rank: 32 x 2048 = 65,536`, `Total batch size 524,288 =>
gradient accumulation steps: 1`, the configuration of the model a line a value, from 2026 as JSON) and common.py
(`Distributed world size: 8`).

modded-nanogpt train_gpt*.py prints its own source: the hyperparameters are its lines `num_iterations : int = 1480`,
products written out. What the batch counts, the comment beside it says. It shows nvidia-smi, too: where its own
processes are, memory is in use. Track 3 prints `on NVIDIA H100 80GB HBM3 with world_size 8`.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting
from sweepscope.pipeline.logs.expressions import quotient, whole
from sweepscope.pipeline.logs.extractors import computed_settings, matched_settings, named_settings
from sweepscope.pipeline.logs.facts import Facts

_COUNT = r"([\d,]+)"
_TO_VOCABULARY = (
    "defaulting to vocab_size of GPT-2 to \\d+ \\(|found vocab_size = |Vocab size: |Padding vocab_size from "
)
_NUMBERS = {
    "vocab_size": rf"^(?:{_TO_VOCABULARY}){_COUNT}",  # before it is padded
    "gas": rf"(?:=> calculated |=> )gradient accumulation steps: {_COUNT}\s*$",
    "gbs_tokens": rf"^(?:total desired batch size: |Total batch size ){_COUNT}(?: =>|\s*$)",
    "mbs": rf"^Tokens / micro-batch / rank: {_COUNT} x ",
    "seq_len": rf"^Tokens / micro-batch / rank: [\d,]+ x {_COUNT} = ",
    "arg:rank_tokens": rf"^Tokens / micro-batch / rank: [\d,]+ x [\d,]+ = {_COUNT}",
    "arg:micro_batch_tokens": rf"^Tokens / micro-batch: {_COUNT}",
    "steps_planned": rf"^(?:Using user-provided|Calculated) number of iterations(?: from .*)?: {_COUNT}\s*$",
    "params": rf"^(?:Number of parameters|total {{19}}): {_COUNT}",
    "arg:decayed": rf"^num decayed parameter tensors: \d+, with {_COUNT} parameters",
    "arg:other": rf"^num non-decayed parameter tensors: \d+, with {_COUNT} parameters",
    "num_gpus": rf"\bDistributed world size: {_COUNT}\s*$",
}
_TEXTS = {
    "arg:alone_on": r"^using device: (cuda|cpu|mps)\s*$",
    "torch_version": r"^Running [Pp]y[Tt]orch (\d\S*) compiled for CUDA ",
    "cuda_version": r"^Running [Pp]y[Tt]orch \d\S* compiled for CUDA ([\d.]+)",
    "arg:dtype": r"^COMPUTE_DTYPE: torch\.(\w+)",
    "arg:fp8": r"^✓ (FP8) training enabled",
}
_MACHINE = (
    ("accelerator", r"^GPU: (.+?) \| Peak FLOPS \(BF16\)"),
    ("accelerator", r"compiled for CUDA [\d.]+ on (.+) with world_size \d+\s*$"),
    ("num_gpus", r"compiled for CUDA [\d.]+ on .+ with world_size (\d+)\s*$"),
    # Speedruns print `B=32 T=1024 ddp_world_size=2 train_accumulation_steps=8 ...` of what they computed.
    ("num_gpus", r"\bddp_world_size=(\d+)\b"),
    ("gas", r"\b(?:train|grad(?:ient)?)_accum(?:ulation)?_steps=(\d+)\b"),
    ("mbs", r"^B=(\d+) T=\d+ "),
    ("seq_len", r"^B=\d+ T=(\d+) "),
)
_MODEL = {
    "num_layers": "num_layers",
    "model_dim": "hidden_size",
    "num_heads": "num_heads",
    "num_kv_heads": "num_kv_heads",
} | {"n_kv_head": "num_kv_heads", "sequence_len": "seq_len", "vocab_size": "vocab_size"}
_PAIR = r'^(?:  )?"?(\w+)"?: (\d+),?\s*$'
_IN_DICT, _BUILT = r"'(\w+)': (\d+)", _MODEL | {"n_layer": "num_layers", "n_head": "num_heads", "n_embd": "hidden_size"}
"""Of nanochat's checkpoint_manager, whose model is the one that is trained on."""
_SOURCE = r"^    {} ?: ?int ?= ?(\d[\d *]*?)\s*{}"
_HYPERPARAMETERS = (
    ("gbs", _SOURCE.format("batch_size", "# batch size, in sequences, across all devices")),
    ("mbs", _SOURCE.format("device_batch_size", "# batch size, in sequences, per device")),
    ("gbs_tokens", _SOURCE.format("batch_size", "# batch size in tokens")),
    ("gbs_tokens", _SOURCE.format("train_batch_size", "(?:#|$)")),
    ("seq_len", _SOURCE.format("sequence_length", "# sequence length, in tokens")),
)
_SMI_USED = "arg:smi_used"
_USED = r"^\| .* */ *\d+W \| *(\d+)MiB / +\d+MiB \|"
_LEAST_MIB = 400
"""Of a device with a CUDA context."""
_MOST_IDLE_MIB = 9
"""Of a device that no process uses; between the two, a process is starting on it."""

LITERALS = (
    *("vocab_size of GPT-2", "found vocab_size = ", "Vocab size: ", "Padding vocab_size from ", "desired batch size: "),
    *("gradient accumulation steps: ", "Tokens / micro-batch", "number of iterations", "Number of parameters: "),
    *("decayed parameter tensors: ", "using device: ", "Distributed world size: ", "compiled for CUDA "),
    *(" | Peak FLOPS (BF16)", "COMPUTE_DTYPE: ", "FP8 training enabled", "total                   : "),
    *("uilding model with config: {", "ddp_world_size=", "B=", "_accumulation_steps=", "_accum_steps="),
    *("# batch size", "# sequence length, in tokens", "train_batch_size: int", "MiB |"),
    *(f"{name}: " for name in ("num_layers", "model_dim", "num_heads", "num_kv_heads")),
    *(f'"{name}": ' for name in ("n_kv_head", "sequence_len", "vocab_size")),
)


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the headers. `lines` are without a logger's prefix."""
    text = pl.col("text")
    counts = {name: text.str.extract(pattern).str.replace_all(",", "") for name, pattern in _NUMBERS.items()}
    texts = {name: text.str.extract(pattern) for name, pattern in _TEXTS.items()}
    used = text.str.extract(_USED).cast(pl.Int64, strict=False)
    is_built = text.str.contains("uilding model with config: {", literal=True)
    parts = [
        computed_settings(lines, counts | texts | {_SMI_USED: pl.when(used > _MOST_IDLE_MIB).then(used)}),
        matched_settings(lines, _MACHINE),
        named_settings(lines, _PAIR, _MODEL, setting_source="argument_dump"),
        named_settings(lines.filter(is_built), _IN_DICT, _BUILT, setting_source="argument_dump"),
    ]
    for name, pattern in _HYPERPARAMETERS:
        values = {name: _product(text.str.extract(pattern))}
        parts.append(computed_settings(lines, values, setting_source="argument_dump"))
    return pl.concat(parts)


def _product(written: pl.Expr) -> pl.Expr:
    """The product of factors that are written as `8*64`."""
    factors = written.str.extract_all(r"\d+").cast(pl.List(pl.Int64), strict=False)
    return factors.list.eval(pl.element().product()).list.first()


def with_devices(facts: Facts) -> Facts:
    """`facts` with the number of devices in use that nvidia-smi shows, in place of what it shows of each.

    Unknown where it was called while the ranks' processes were starting: devices without a context may follow.
    """
    is_used = pl.col("name") == _SMI_USED
    has_context = pl.col("value").cast(pl.Int64, strict=False) >= _LEAST_MIB
    shown = (
        facts.settings.filter(is_used)
        .group_by("source", maintain_order=True)
        .agg(pl.col("line_no").last(), n=pl.col("line_no").n_unique(), is_ready=has_context.all())
        .filter("is_ready")
    )
    counted = computed_settings(shown, {"arg:devices_in_use": pl.col("n")})
    return replace(facts, settings=pl.concat([facts.settings.filter(~is_used), counted]))


_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_WORLD = quotient(whole("arg:micro_batch_tokens"), whole("arg:rank_tokens"))
_IS_ALONE = pl.col("arg:alone_on").is_not_null()

NUM_GPUS = pl.coalesce(whole("num_gpus"), _WORLD, pl.when(_IS_ALONE).then(1), whole("arg:devices_in_use"))
"""The number of processes, as far as the header tells it."""

COMBINED = (
    CombinedSetting(
        "params",
        pl.when(pl.col("params").is_null()).then(whole("arg:decayed") + whole("arg:other")),
        ("arg:decayed",),
    ),
    CombinedSetting(
        "num_gpus",
        pl.when(pl.col("num_gpus").is_null()).then(NUM_GPUS),
        ("arg:rank_tokens", "arg:alone_on", "arg:devices_in_use"),
    ),
    CombinedSetting("accelerator", pl.when(pl.col("arg:alone_on") == "cpu").then(pl.lit("CPU")), ("arg:alone_on",)),
    CombinedSetting(
        "precision",
        pl.when(pl.col("arg:fp8").is_not_null())
        .then(pl.lit("fp8"))
        .otherwise(pl.col("arg:dtype").replace_strict(_DTYPES, default=None, return_dtype=pl.String)),
        ("arg:dtype",),
    ),
)
