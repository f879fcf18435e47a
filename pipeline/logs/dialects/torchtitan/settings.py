"""Configuration as torchtitan prints it: the mesh, the batch, the model, and options on the command line.

Formats: distributed/parallel_dims.py. `Building device mesh with parallelism: pp=1, dp_replicate=1, ...` names every
dimension; versions to 2025 wrote `Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]` with only those in use, and
split dp_shard around the experts (`dp_shard_mod_ep`, `dp_shard_in_ep`); the first ones had a single `dp`.
trainer.py: `Trainer is initialized with local batch size ..`, before mid-2025 `Training starts at step 1, with local
batch size ..`. Primus: `arguments section.name..... value`. `arg:` names feed `rules`.

The whole configuration, on request: config/job_config.py maybe_log (debug.print_config: JSON, a name a line, from late
2025 on), train.py (job.print_args: a dict on one line, to 2025). A validation has a sequence length, a batch and steps
of its own, from which a line of JSON cannot be distinguished: only names that no other section has are read there.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.extractors import matched_settings, named_settings, once_per_text
from sweepscope.pipeline.logs.facts import SETTING_FACTS, conform
from sweepscope.pipeline.text.line_templates import with_text

_OPTIONS = {
    "training.seq_len": "seq_len",
    "training.local_batch_size": "mbs",
    "training.batch_size": "mbs",
    "training.global_batch_size": "gbs",
    "training.steps": "steps_planned",
    "activation_checkpoint.mode": "recompute",
    "parallelism.tensor_parallel_degree": "tp",
    "training.tensor_parallel_degree": "tp",
    "parallelism.pipeline_parallel_degree": "pp",
    "experimental.pipeline_parallel_degree": "pp",
    "parallelism.context_parallel_degree": "cp",
    "experimental.context_parallel_degree": "cp",
    "parallelism.expert_parallel_degree": "ep",
    "parallelism.data_parallel_replicate_degree": "arg:dp_replicate",
    "training.data_parallel_replicate_degree": "arg:dp_replicate",
    "parallelism.data_parallel_shard_degree": "arg:dp_shard",
    "training.data_parallel_shard_degree": "arg:dp_shard",
    "parallelism.fsdp_reshard_after_forward": "arg:reshard",
    "parallelism.pipeline_parallel_schedule": "arg:schedule",
    "training.dtype": "arg:dtype",
    "training.mixed_precision_param": "arg:mixed_precision",
    "model.name": "arg:model",
    "model.flavor": "arg:flavor",
    "model.converters": "arg:converters",
}

_MESH = ("pp", "dp", "dp_replicate", "dp_shard", "dp_shard_mod_ep", "dp_shard_in_ep", "cp", "tp", "ep")
_MESH_NAMES = {name: f"arg:mesh_{name}" for name in _MESH}

_OLD_MESH = r"-D device mesh with \[([^\]]*)\], \[([\d, ]*)\]"

_SHAPE = (
    {"dim": "hidden_size", "n_layers": "num_layers", "n_heads": "num_heads", "n_kv_heads": "num_kv_heads"}
    | {"vocab_size": "vocab_size", "inter_dim": "ffn_hidden_size", "hidden_dim": "ffn_hidden_size"}
    | {"head_dim": "head_dim", "kv_lora_rank": "kv_lora_rank", "q_lora_rank": "q_lora_rank"}
    | {"qk_rope_head_dim": "qk_rope_head_dim", "qk_nope_head_dim": "head_dim", "num_experts": "num_experts"}
    | {"top_k": "experts_per_token", "moe_inter_dim": "expert_ffn_hidden_size"}
    | {"n_dense_layers": "num_dense_layers", "enable_weight_tying": "tie_word_embeddings"}
)
# Qwen3ModelArgs states the experts of its dense models, too: defaults that nothing is built from.
_IS_DENSE = r"\bmoe_enabled=False\b"
_DENSE_SHAPE = {name: column for name, column in _SHAPE.items() if "expert" not in column}

_LINE = {
    "mbs": r"\blocal batch size (\d+)",
    "gbs": r"\bglobal batch size (\d+)",
    "gas": r"\bgradient[ _]accumulation[ _]steps:? (\d+)",
    "seq_len": r"\bsequence length (\d+)",
    "steps_planned": r"\btotal steps (\d+)",
}
_OTHER_LINE = {
    # metrics.py: `CUDA capacity: NVIDIA B200 with 178.35GiB memory`; 2024: `GPU capacity: NVIDIA H100 (0) with ..`
    "accelerator": r"[A-Z]+ capacity: (.+?)(?: \(\d+\))? with [\d.]+\s?GiB memory",
    "model": r"Model (\S.*?) size: [\d,]+ total parameters",
    "params": r"Model \S.*? size: ([\d,]+) total parameters",
    "active_params": r"Total parameter count: dense [\d,]+, sparse [\d,]+, active ([\d,]+)",
    "recompute": r"Applied ([Ff]ull|[Ss]elective)(?:AC)? activation checkpointing",
    "framework_version": r"torchtitan version: (\S+)",
    "peak_tflops_logged": r"Peak FLOPS used for computing MFU: ([\d.]+e[+]?\d+)",
    "arg:reshard": r"reshard_after_forward=(True|False)",
    "arg:wrapper": r"Applied (FSDP|HSDP|DDP) to the model",
}
# Quantised matrix products: components/quantization; torchao prints the tensor class once per weight.
_QUANTISED = {
    "mxfp8": ("MXFP8 training active", "Swapped to MXLinear", "to MXFP8TrainingWeightWrapperTensor"),
    "fp8": ("Float8 training active", "Float8 tensorwise scaled training active", "Swapped to Float8Linear"),
}

_DICT = "Running with args: {"
_SECTIONS = {
    "seq_len": r"'training': \{[^{}]*'seq_len': (\d+)",
    "mbs": r"'training': \{[^{}]*'(?:local_)?batch_size': (\d+)",
    "steps_planned": r"'training': \{[^{}]*'steps': (\d+)",
    "recompute": r"'activation_checkpoint': \{[^{}]*'mode': '(full|selective|none)'",
}
_RECOMPUTE = r'^\s*"mode": "(full|selective)",?\s*$'

_DUMP_LITERALS = (
    *(_DICT, '"mode": "', '_parallel_degree": ', '"data_parallel_replicate_degree": '),
    *('"data_parallel_shard_degree": ', '"fsdp_reshard_after_forward": '),
    *('"pipeline_parallel_schedule": ', '"mixed_precision_param": '),
)

LITERALS = (
    *("--training.", "--parallelism.", "--activation_checkpoint.", "--experimental.", "--model."),
    *("arguments training.", "arguments parallelism.", "arguments activation_checkpoint."),
    *("arguments model.", "device mesh with", "with local batch size", " capacity: ", "total parameters"),
    *("Total parameter count:", "activation checkpointing", "torchtitan version:", "Peak FLOPS used"),
    *("reshard_after_forward=", "Applied FSDP", "Applied HSDP", "Applied DDP", "Args("),
    *_DUMP_LITERALS,
    *(message for messages in _QUANTISED.values() for message in messages),
)


@once_per_text
def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """Every setting that a line states, as SETTING_FACTS."""
    text = pl.col("text")
    batch = lines.filter(text.str.contains("with local batch size", literal=True))
    shape = lines.filter(text.str.contains(r"Building \S+ \S+ with \w+Args\("))
    found = [
        matched_settings(batch, _LINE.items()),
        matched_settings(lines, _OTHER_LINE.items()),
        *(
            matched_settings(lines, [("arg:quantised", f"({'|'.join(messages)})")]).with_columns(value=pl.lit(word))
            for word, messages in _QUANTISED.items()
        ),
        *(
            named_settings(part, r"\b(\w+)=(\w+)", names, setting_source="log_line")
            for part, names in (
                (shape.filter(text.str.contains(_IS_DENSE)), _DENSE_SHAPE),
                (shape.filter(~text.str.contains(_IS_DENSE)), _SHAPE),
            )
        ),
        _mesh(lines),
        named_settings(lines, r"--(\w+\.\w+)[= ]+['\"\[]*(\w\S*)", _OPTIONS, setting_source="command_line"),
        _dumped(lines),
        named_settings(lines, r"^arguments (\w+\.\w+?)\.* (\S.*)$", _OPTIONS, setting_source="argument_dump"),
        environment.settings(lines),
    ]
    rows = pl.concat(found)
    value = pl.col("value")
    is_number = pl.col("name").is_in(["params", "active_params"])
    is_unset = value.is_in(["-1", "0.0.0", "0.0.0+unknown"])  # the option's default, an unset version
    is_teraflops = pl.col("name") == "peak_tflops_logged"
    return rows.filter(~is_unset).with_columns(
        value=pl.when(is_number)
        .then(value.str.replace_all(",", "", literal=True))
        .when(pl.col("name") == "recompute")
        .then(value.str.to_lowercase())
        .when(is_teraflops)
        .then((value.cast(pl.Float64, strict=False) / 1e12).cast(pl.String))
        .otherwise(value)
    )


def _dumped(lines: pl.DataFrame) -> pl.DataFrame:
    """Settings of both forms of the whole configuration."""
    names = {
        name.split(".", 1)[1]: column
        for name, column in _OPTIONS.items()
        if name.startswith("parallelism.") or name == "training.mixed_precision_param"
    }
    as_dict = lines.filter(pl.col("text").str.contains(_DICT, literal=True))
    sections = [matched_settings(lines, [("recompute", _RECOMPUTE)]), matched_settings(as_dict, _SECTIONS.items())]
    return pl.concat(
        [
            named_settings(lines, r'^\s*"(\w+)": "?([\w-]+)"?,?\s*$', names, setting_source="argument_dump"),
            named_settings(as_dict, r"'(\w+)': '?([\w-]+)'?[,}]", names, setting_source="argument_dump"),
            pl.concat(sections).with_columns(setting_source=pl.lit("argument_dump")),
        ]
    )


def _mesh(lines: pl.DataFrame) -> pl.DataFrame:
    """Sizes of the mesh dimensions, and `arg:mesh` for a line printed to its end: the old form names only those in use,
    old versions of the new form lack `ep`, and tp comes last but for it."""
    text = pl.col("text")
    new = lines.filter(text.str.contains("Building device mesh with parallelism:", literal=True))
    is_whole = text.str.contains(r"\btp=\d+(?:, \w+=\d+)*\s*$")
    # A cut line breaks off within a number or a name: what follows its last comma is worth nothing.
    new = with_text(
        new.with_columns(is_whole=is_whole), pl.when(is_whole).then(text).otherwise(text.str.replace(r",[^,]*$", ","))
    )
    names, degrees = text.str.extract(_OLD_MESH, 1), text.str.extract(_OLD_MESH, 2)
    old = lines.select(
        "source",
        "line_no",
        dimension=names.str.replace_all("'", "", literal=True).str.split(", "),
        value=degrees.str.split(", "),
    ).filter(pl.col("dimension").list.len() == pl.col("value").list.len())
    listed = old.explode("dimension", "value").filter(pl.col("dimension").is_in(_MESH))
    built = pl.concat([new.filter("is_whole").select("source", "line_no"), old.select("source", "line_no")])
    sizes = pl.concat(
        [
            listed.select("source", "line_no", "value", name=pl.format("arg:mesh_{}", "dimension")),
            built.select("source", "line_no", value=pl.lit("built"), name=pl.lit("arg:mesh")),
        ]
    ).with_columns(setting_source=pl.lit("log_line"))
    return pl.concat(
        [named_settings(new, r"\b(\w+)=(\d+)", _MESH_NAMES, setting_source="log_line"), conform(sizes, SETTING_FACTS)]
    )
