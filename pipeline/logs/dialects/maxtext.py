"""MaxText (JAX on TPUs and GPUs).

Formats: src/maxtext/common/metric_logger.py (step line), configs/pyconfig.py (`Config param name: value`),
utils/max_utils.py (system information, parameter count), maxtext_utils.py (device mesh). Steps count from 0. Step 0
holds compilation and step 1 is often impossibly fast, because JAX dispatches without waiting; both are kept as logged.
Old lines say `TFLOP/s:` and lack the tokens. With multi-token prediction the line ends with `main_model_loss` and
`mtp_loss`, the parts of its `loss`; forks print the parts alone. Steps at which a profile begins or ends may be printed
without their time (hide_profiler_step_metric). The dump prints names in the order default, model, command line.
"""

from __future__ import annotations

from functools import reduce

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.expressions import whole, words
from sweepscope.pipeline.logs.extractors import (
    computed_settings,
    extract_numbers,
    matched_settings,
    milestones,
    named_settings,
)
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.text.quantities import NUMBER
from sweepscope.pipeline.text.timestamps import STAMPS, stamped, timestamp

_PROFILED = "profiler activation/deactivation step: "
_STEP = rf"completed (?:{_PROFILED}|step:) *(\d+),"


def _loss(name: str) -> str:
    """Three decimals end a loss: a line cut inside it holds fewer."""
    return rf"(?:\bseconds: *[0-9.]+|{_PROFILED}\d+),.*\b{name}: *(-?\d+\.\d{{3,}}|-?inf|nan)"


_NUMBERS = {
    "loss": _loss("loss"),
    "main_loss": _loss("main_model_loss"),
    "step_time_s": rf"\bseconds: *({NUMBER})",
    "tflops_per_gpu_logged": rf"\bTFLOP/s(?:/device)?: *({NUMBER})",
    "tokens_per_s_per_gpu": rf"\bTokens/s/device: *({NUMBER})",
}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of step lines; a line that does not reach its loss is cut and stays unparsed."""
    text = pl.col("text")
    mine = lines.filter(text.str.contains(_STEP))
    return conform(
        extract_numbers(mine, _NUMBERS, {"number": _STEP, **STAMPS}).with_columns(
            ts=pl.coalesce(stamped(), timestamp(pl.col("prefix"))),
            loss=pl.coalesce("loss", "main_loss"),
            step=pl.when(pl.any_horizontal(pl.col("loss", "main_loss").is_not_null())).then("number"),
        ),
        STEP_FACTS,
    )


_PARAMETER = r"Config param (\w+): (.*)"
_NAMES = (
    {"model_name": "model", "max_target_length": "seq_len", "steps": "arg:steps"}
    | {"gradient_accumulation_steps": "gas", "per_device_batch_size": "arg:per_device"}
    | {"global_batch_size_to_train_on": "gbs", "dtype": "arg:dtype"}
    | {"quantization": "arg:quantization", "remat_policy": "arg:remat"}
    | {"num_decoder_layers": "num_layers", "base_num_decoder_layers": "arg:layers"}
    | {"emb_dim": "hidden_size", "base_emb_dim": "arg:hidden", "vocab_size": "vocab_size", "mlp_dim": "ffn_hidden_size"}
    | {"attention_type": "arg:attention_type", "q_lora_rank": "arg:q_lora_rank", "kv_lora_rank": "arg:kv_lora_rank"}
    | {"qk_rope_head_dim": "arg:qk_rope_head_dim", "num_query_heads": "num_heads", "num_kv_heads": "num_kv_heads"}
    | {"head_dim": "head_dim", "logits_via_embedding": "tie_word_embeddings"}
    | {"num_experts": "arg:experts", "num_experts_per_tok": "arg:experts_per_token"}
    | {
        f"{net}_{axis}_parallelism": f"arg:{net}_{axis}"
        for net in ("ici", "dcn")
        for axis in ("data", "fsdp", "tensor", "pipeline", "context", "expert")
    }
)
_PRINTED = {
    "num_gpus": r"\bNum_devices: (\d+), shape",
    "torch_version": r"System Information: Jax Version: (\S+)",
    "accelerator": r"^\s*TFRT (TPU ?\w+(?: lite)?)",
}
# `python3 -m MaxText.train base.yml steps=50 ...` as the shell echoes it; config/pyconfig.py reads name=value.
_COMMAND = r"(?i)\bmaxtext(?:/|\.)\S*train"
_COMMAND_LITERALS = ("axtext.", "axtext/", "axText.", "axText/")
_OPTION = r"(?:^|\s)(\w+)=(\S+)"
# Its next lines, where it was wrapped: nothing but options.
_OPTIONS_ONLY = (
    r"^\s*(?:\w+=\S+\s+)*(?:steps|per_device_batch_size|max_target_length|model_name|(?:ici|dcn)_\w+)=\S+"
    r"(?:\s+\w+=\S+)*\s*\\?\s*$"
)
_OPTION_LITERALS = ("steps=", "per_device_batch_size=", "max_target_length=", "model_name=", "ici_", "dcn_")
_BILLION = r"\bnumber parameters: ([\d.]+) billion"


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the configuration dump, the system information and the parameter count."""
    text = pl.col("text")
    params = text.str.extract(_BILLION).cast(pl.Float64, strict=False) * 1e9
    launched = lines.filter(
        (text.str.contains(_COMMAND) & text.str.contains("=", literal=True)) | text.str.contains(_OPTIONS_ONLY)
    )
    return pl.concat(
        [
            named_settings(lines, _PARAMETER, _NAMES, setting_source="argument_dump"),
            named_settings(launched, _OPTION, _NAMES, setting_source="command_line"),
            matched_settings(lines, _PRINTED.items()),
            computed_settings(lines, {"params": params}),
            environment.settings(lines),
        ]
    )


def _product(axis: str) -> pl.Expr:
    """Parallelism within a slice times that between slices; -1 (what is left over) stays unknown."""
    degrees = [whole(f"arg:{net}_{axis}") for net in ("ici", "dcn")]
    known = reduce(lambda left, right: left & right, [degree.fill_null(1) > 0 for degree in degrees])
    is_stated = pl.any_horizontal(degree.is_not_null() for degree in degrees)
    return pl.when(is_stated & known).then(degrees[0].fill_null(1) * degrees[1].fill_null(1))


def _per_device() -> pl.Expr:
    """Sequences per device and step. A fraction means that several devices share one, so no micro-batch follows."""
    size = pl.col("arg:per_device").cast(pl.Float64, strict=False)
    return pl.when((size == size.round()) & (size >= 1)).then(size.cast(pl.Int64, strict=False))


_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_QUANTIZED = {"int8": "int8", "fp8": "fp8", "fp8_full": "fp8", "nanoo_fp8": "fp8"}
# configs/types.py RematPolicy. All but `full` keep some products, on the device or off it; `custom` lists its own.
_REMAT = {"full": "full", "nothing": "full", "none": "none"} | dict.fromkeys(
    (
        *("minimal", "minimal_flash", "minimal_with_context", "minimal_offloaded"),
        *("minimal_with_context_and_quantization", "save_dot_except_mlp", "save_dot_with_context_except_mlp"),
        *("save_dot_except_mlpwi", "save_qkv_proj", "save_out_proj", "qkv_proj_offloaded"),
    ),
    "selective",
)


def _above_one(value: str) -> pl.Expr:
    """A mixture's value; MaxText prints 1 expert for a dense model."""
    return pl.when(whole("arg:experts") > 1).then(whole(value))


# Every run prints the latent widths (`configs/base.yml`); only `attention_type: mla` uses them.
_IS_MLA = pl.col("arg:attention_type").str.to_lowercase() == "mla"
_LATENT = tuple(
    CombinedSetting(name, pl.when(_IS_MLA).then(whole(f"arg:{name}")), (f"arg:{name}",))
    for name in ("q_lora_rank", "kv_lora_rank", "qk_rope_head_dim")
)

COMBINED: tuple[CombinedSetting, ...] = (
    *_LATENT,
    # Steps count from 0; -1 means the length of the learning-rate schedule.
    CombinedSetting("steps_planned", pl.when(whole("arg:steps") > 1).then(whole("arg:steps") - 1), ("arg:steps",)),
    CombinedSetting("tp", _product("tensor"), ("arg:ici_tensor",)),
    CombinedSetting("pp", _product("pipeline"), ("arg:ici_pipeline",)),
    CombinedSetting("cp", _product("context"), ("arg:ici_context",)),
    CombinedSetting("ep", _product("expert"), ("arg:ici_expert",)),
    CombinedSetting("mbs", _per_device(), ("arg:per_device",)),
    CombinedSetting("num_layers", whole("arg:layers"), ("arg:layers",)),
    CombinedSetting("hidden_size", whole("arg:hidden"), ("arg:hidden",)),
    CombinedSetting("num_experts", _above_one("arg:experts"), ("arg:experts",)),
    CombinedSetting("experts_per_token", _above_one("arg:experts_per_token"), ("arg:experts_per_token",)),
    CombinedSetting("precision", words("arg:quantization", _QUANTIZED), ("arg:quantization",)),
    CombinedSetting(
        "precision",
        pl.when(words("arg:quantization", _QUANTIZED).is_null()).then(words("arg:dtype", _DTYPES)),
        ("arg:dtype",),
    ),
    CombinedSetting("recompute", words("arg:remat", _REMAT), ("arg:remat",)),
)


# XPK's wrapper of the command (core/docker_container.py, "XPK End: <date>" before it). MaxText itself prints no end.
_END = r"^\s?EXIT_CODE=0\s*$"


DIALECT = Dialect(
    name="maxtext",
    module=__name__,
    signature_literals=(
        *("completed step: ", "TFLOP/s/device: ", "Tokens/s/device: ", "Config param "),
        *("System Information: Jax", "MaxText.train", "maxtext.trainers"),
    ),
    steps=steps,
    settings=settings,
    events=milestones(launch="System Information: Jax Version:", training_end=_END),
    combined=COMBINED,
    literals_by_function={
        "steps": ("completed step: ", _PROFILED),
        "settings": (
            "Config param ",
            "Num_devices: ",
            "System Information: Jax Version:",
            "TFRT TPU",
            "number parameters: ",
            *_COMMAND_LITERALS,
            *_OPTION_LITERALS,
            *environment.LITERALS,
        ),
        "events": ("System Information: Jax Version:", "EXIT_CODE=0"),
    },
)
