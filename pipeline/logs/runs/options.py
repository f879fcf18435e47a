"""Options: arguments that change how the steps of a run are executed, and by which runs of one layout are no repeats.

What an argument does is known by its name for frameworks that we know, not for a script of one's own. So every argument
is an option but those whose name or value shows that steps run the same with another one: where files are, what a run
is called, seeds, how it learns and how long, what it logs, saves and evaluates.
"""

from __future__ import annotations

import hashlib
import re

import polars as pl

from sweepscope.pipeline.logs.synonyms import words

_ID_CHARS = 12
_NO_OPTION = re.compile(
    r"\b(?:"
    # where files are, and what is called how
    r"paths?|dirs?|directory|folder|files?|root|home|url|uri|prefix|suffix|cache|names?|title|id|uuid|tags?|notes?|comments?|"
    r"description|version|commit|user|owner|entity|project|experiment|exp|group|trial|run|runs|job|jobid|"
    r"out|output|data|dataset|datasets|tokenizer|vocab|split|blend|"
    # who runs where
    r"rank|host|hosts|hostname|addr|address|port|master|endpoint|rdzv|node|nodelist|nodes|device|devices|visible|pid|"
    # how it learns, and how long
    r"seed|lr|learning|decay|warmup|anneal|beta1?|beta2?|betas|eps|epsilon|momentum|clip|init|dropout|scheduler|temperature|"
    r"steps?|iters?|iterations?|epochs?|samples|updates|duration|budget|timeout|limit|exit|end|start|begin|date|time|walltime|"
    # what it logs, saves and evaluates
    r"log|logs|logging|logger|log2|print|verbose|report|wandb|tensorboard|mlflow|trackio|comet|aim|tb|timers?|"
    r"save|saved|saving|load|loaded|resume|ckpt|checkpoints?|snapshot|restore|"
    r"eval|evaluation|valid|validation|val|test|profile|profiler|profiling|trace|debug|dump|monitor|progress|bar|"
    r"interval|freq|frequency|every|results?|config|cfg|command|argv|entrypoint|script"
    r")\b"
)
_IS_OPTION_ALL_THE_SAME = re.compile(
    r"\b(?:activations?|gradients?|grad|recompute|remat|workers|pin memory|prefetch)\b"
)
"""Words that make an option of a name with `checkpoint` or `data` in it."""
_NO_VALUE = r"[/\\]|://|\bat 0x[0-9a-f]+|^[0-9a-f]{16,}$|\d{4}-\d\d-\d\d|\d{8}[-_]\d{4}"
"""Paths, addresses, objects, digests, dates."""


def with_options(runs: pl.DataFrame, arguments: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`runs` with `options_id`, the same for runs whose options are equal, and `arguments` with `is_option`.

    Both have the columns of their tables. A run none of whose options is known has no `options_id`.
    """
    names = arguments["name"].unique().to_list()
    options = [name for name in names if is_option_name(name)]
    marked = arguments.with_columns(
        is_option=pl.col("name").is_in(options) & ~pl.col("value").str.contains(_NO_VALUE).fill_null(value=True)
    )
    stated = (
        marked.filter("is_option")
        .sort("run_id", "name", "value")
        .group_by("run_id", maintain_order=True)
        .agg(pl.concat_str("name", pl.lit("="), "value").str.join("\n").alias("options"))
    )
    ids = [hashlib.sha256(text.encode()).hexdigest()[:_ID_CHARS] for text in stated["options"]]
    known = stated.select("run_id", pl.Series("options_id", ids, dtype=pl.String))
    return runs.drop("options_id", strict=False).join(known, on="run_id", how="left", maintain_order="left"), marked


def is_option_name(name: str) -> bool:
    """Whether an argument of this name may change how steps run.

    >>> [is_option_name(name) for name in ("compile", "optim.fused", "use_flash_attn", "activation_checkpointing")]
    [True, True, True, True]
    >>> [is_option_name(name) for name in ("output_dir", "seed", "optimizer.lr", "train_iters", "wandb_project")]
    [False, False, False, False, False]
    """
    plain = words(name)
    return (
        _NO_OPTION.search(plain) is None or _IS_OPTION_ALL_THE_SAME.search(words(name.rpartition(".")[2])) is not None
    )
