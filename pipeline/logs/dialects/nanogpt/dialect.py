"""nanoGPT, build-nanogpt, nanochat, modded-nanogpt, llm.c and llama2.c; and `wordplay`.

Formats: nanoGPT train.py (`iter 10: loss 4.0863, time 561.94ms, mfu 17.5%`; an iteration is an optimizer step) and
configurator.py (`Overriding: name = value`, and the config file's lines after `Overriding config with`);
modded-nanogpt train_gpt*.py (`step:7/1705 train_loss:.. train_time:..ms step_avg:..ms`, later without the loss; its
track 3 adds `step_time:..ms mfu:3.06%`; see `speedruns`); llm.c llmc/logger.h (`s:0 trl:10.96 lr:.. norm:..` in
main.log), train_gpt2.cu and train_gpt2.py (`step 1/18865 | loss 11.0 (+nanz)| norm .. | lr .. | 350.1 ms | 59.5% bf16
MFU | .. tok/s`);
build-nanogpt train_gpt2.py (`step 0 | loss: 10.9 | lr .. | norm: .. | dt: ..ms | tok/sec: ..`); nanochat
scripts/base_train.py (`step 00011/21400 (0.05%) | loss: 9.01 | grad norm: .. | lrm: .. | dt: ..ms | tok/sec: 1,048,576
| mfu: 48.12 | total time: 0.05m`, MFU in percent); llama2.c train.py (`10 | loss 5.75 | lr 4.9e-05 | 870.53ms | mfu
0.21%`).

modded-nanogpt writes its own source first, which holds the same words with format fields instead of digits.
Any of them may follow the prefix of a custom logger. Validation lines (`val_loss`, `tel:`, nanoGPT's `step 250: train
loss .., val loss ..`) are not steps. nanoGPT judges MFU against an A100's 312 TFLOP/s whatever the GPU, and prints
-100% before it is known.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.dialects.nanogpt import chats, headers, lectures, llmc, speedruns, wordplay
from sweepscope.pipeline.logs.expressions import whole
from sweepscope.pipeline.logs.extractors import (
    computed_peaks,
    computed_settings,
    milestones,
    named_settings,
    without_logger,
)
from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts, conform
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.line_templates import matching
from sweepscope.pipeline.text.quantities import divided, human, number
from sweepscope.pipeline.text.timestamps import timestamp

_VALUE = r"-?[\d.]+(?:[eE][-+]?\d+)?|-?inf|nan"
_NANOGPT = r"^iter (\d+): loss "
_NANOGPT_COMPLETE = rf"^iter \d+: loss ({_VALUE}), time ([\d.]+)ms"
_MODDED = r"^step:(\d+)/\d+ "
_BARRED = r"^step +\d+(?:/\d+)?(?: \([\d.]+%\))? \| (?:train )?loss:? "
_LLAMA2C = r"^(\d+) \| loss "
_ANY = rf"^(?:iter \d+: loss |step:\d+/\d+ |s:\d+ trl:|\d+ \| loss )|{_BARRED}"
_ANYWHERE = (
    r"iter [0-9]+: loss |step:[0-9]+/[0-9]+ |s:[0-9]+ trl:|[0-9]+ \| loss |step +[0-9]+[ /]|"
    rf"{wordplay.BEGINNING}|{llmc.STEP_BEGINNING}|{lectures.BEGINNING}|{chats.BEGINNING}"
)
"""Found in any line that may be a step's, in front of which a logger may have printed something."""
_BEGINNINGS = (
    r"iter [0-9]+: loss |step:[0-9]+/[0-9]+ |s:[0-9]+ trl:|[0-9]+ \| loss |step +[0-9]+[ /]|Overriding: |"
    rf"number of parameters: |tokens per iteration will be: |peak memory |{wordplay.BEGINNING}|"
    rf"{llmc.BEGINNING}|{lectures.BEGINNING}|{chats.BEGINNING}"
)


def _positive(value: pl.Expr) -> pl.Expr:
    return pl.when(value.is_finite() & (value > 0)).then(value)


_FIELDS = {
    "nanogpt_number": _NANOGPT,
    "nanogpt_loss": _NANOGPT_COMPLETE,
    "nanogpt_ms": r"^iter \d+: loss \S+, time ([\d.]+)ms",
    "percent": r"[,|] mfu (-?[\d.]+)%",
    "llama2c_number": _LLAMA2C,
    "llama2c_loss": rf"^\d+ \| loss ({_VALUE}) \| lr \S+ \| [\d.]+ms \| mfu -?[\d.]+%",
    "llama2c_ms": r" \| ([\d.]+)ms \| mfu ",
    "modded_number": _MODDED,
    "modded_planned": r"^step:\d+/(\d+) ",
    "modded_loss": rf"\btrain_loss:({_VALUE})",
    **speedruns.FIELDS,
    "own_ms": r" step_time:([\d.]+)ms",
    "modded_percent": r" mfu:([\d.]+)%",
    "modded_complete": r"^step:\d+/\d+ .*\b(t)rain_time:\d[\d.]*m?s step_avg:[\w.]+ms",
    "validation": r"\b(val_loss):",
    "llmc_number": r"^s:(\d+) trl:",
    "llmc_loss": rf"^s:\d+ trl:({_VALUE})",
    "rate": rf"\blr:({_VALUE})",
    "norm": rf"\bnorm:({_VALUE})",
    "barred_number": r"^step +(\d+)(?:/\d+)?(?: \([\d.]+%\))? \| (?:train )?loss",
    "barred_planned": r"^step +\d+/(\d+)(?: \([\d.]+%\))? \| ",
    "barred_loss": rf"^step +\d+(?:/\d+)?(?: \([\d.]+%\))? \| (?:train )?loss:? +({_VALUE})[ |(]",
    "barred_ms": r"\| (?:dt: *|\()?([\d.]+) ?ms \|",
    "barred_rate": rf"\| lr ({_VALUE}) ?\|",
    "barred_norm": rf"\| (?:grad )?norm:? +({_VALUE})[ |(]",
    "barred_percent": r"\| ([\d.]+)% \w+ MFU \|",
    # bf16, without naming a digit (see layouts)
    "nanochat_percent": r"\| (?:bf\d\d_)?mfu: ([\d.]+) \|",
    # The last field: the unit shows that the number is whole; build-nanogpt prints two decimals and none.
    "tokens": r"\| (?:tok/sec: )?(\d+ tok/s|\d+\.\d\d$|[\d,]+ \| (?:bf\d\d_)?mfu: )",
}
_PERCENTS = ("percent", "barred_percent", "nanochat_percent", "modded_percent")


def _seconds(printed: str) -> pl.Expr:
    return _positive(divided(number(pl.col(printed)), 1000))


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of training lines of any of the formats; one that stops before its time (or loss) ends is unparsed."""
    bare = without_logger(matching(lines, _ANYWHERE), _BEGINNINGS)
    mine = extract_each(matching(bare, _ANY), _FIELDS)

    def has(name: str) -> pl.Expr:
        return pl.col(name).is_not_null()

    is_modded = has("modded_number") & ~has("validation")
    is_clocked = is_modded & ~has("own_ms")
    is_barred = has("barred_loss") & has("barred_ms") & has("tokens")
    is_plain = pl.any_horizontal(has(name) for name in ("nanogpt_loss", "llmc_loss", "llama2c_loss"))
    complete = (is_modded & has("modded_complete")) | is_plain | is_barred
    numbers = ("nanogpt_number", "llmc_number", "barred_number", "llama2c_number")
    counter = pl.coalesce("modded_number", *numbers)
    is_mine = is_modded | pl.any_horizontal(has(name) for name in numbers)
    found = conform(
        mine.filter(is_mine).with_columns(
            step=pl.when(complete).then(counter),
            steps_planned=pl.coalesce("modded_planned", "barred_planned"),
            loss=number(pl.coalesce("nanogpt_loss", "modded_loss", "llmc_loss", "barred_loss", "llama2c_loss")),
            step_time_s=pl.when(is_clocked)
            .then(speedruns.clock_s())
            .otherwise(pl.coalesce(_seconds(f"{form}_ms") for form in ("own", "nanogpt", "barred", "llama2c"))),
            consumed_tokens=pl.when(is_clocked).then(speedruns.CLOCK),
            mfu_logged=_positive(divided(number(pl.coalesce(_PERCENTS)), 100)),
            tokens_per_s=number(pl.col("tokens").str.extract(r"^([\d.,]+)")),
            learning_rate=number(pl.coalesce("rate", "barred_rate")),
            grad_norm=number(pl.coalesce("norm", "barred_norm")),
            ts=timestamp(pl.concat_str("prefix", "logged", ignore_nulls=True)),
            text="logged",
        ),
        STEP_FACTS,
    )
    return pl.concat([found, wordplay.steps(bare), llmc.steps(bare), lectures.steps(bare), chats.steps(bare)])


_OVERRIDE = r"^Overriding: (\w+) = (.*)$"
_CONFIG_LINE = r"^(\w+) = (\d+)\s*(?:#.*)?$"
_NAMES = {
    "batch_size": "mbs",
    "block_size": "seq_len",
    "max_iters": "steps_planned",
    "n_layer": "num_layers",
    "n_head": "num_heads",
    "n_embd": "hidden_size",
}
_PARAMETERS = r"^number of parameters: ([\d.]+[KMB]?)"
# gloo connects the ranks of the world group; modded-nanogpt makes no other one.
_PEERS = r"^\[Gloo\] Rank \d+ is connected to (\d+) peer ranks\."
_TOKENS_PER_STEP = r"^tokens per iteration will be: ([\d,]+)"


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of nanoGPT's overrides, its parameter count and its tokens per step."""
    lines = without_logger(lines, _BEGINNINGS)
    text = pl.col("text")
    sized = {
        "params": human(text.str.extract(_PARAMETERS)),
        "gbs_tokens": number(text.str.extract(_TOKENS_PER_STEP)),
        "num_gpus": number(text.str.extract(_PEERS)) + 1,
    }
    return pl.concat(
        [
            named_settings(lines, _OVERRIDE, _NAMES, setting_source="command_line"),
            # The command line comes behind the file, and wins.
            named_settings(lines, _CONFIG_LINE, _NAMES, setting_source="command_line"),
            computed_settings(lines, sized),
            wordplay.settings(lines),
            headers.settings(lines),
            llmc.settings(lines),
            environment.settings(lines),
        ]
    )


_VALIDATED = r"^step:(\d+)/(\d+) val_loss:\d"


_ENDED = rf"^Total training time: [\d.]+m\s*$|{chats.ENDED}"


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS of what comes behind the last step: modded-nanogpt's validation, nanochat's total time or model."""
    lines = without_logger(lines, _BEGINNINGS)
    done, planned = (pl.col("text").str.extract(_VALIDATED, group) for group in (1, 2))
    last = lines.filter((done == planned).fill_null(value=False) | pl.col("text").str.contains(_ENDED))
    return milestones(training_end=rf"{_VALIDATED}|{_ENDED}")(last)


_PEAKS = {
    "mem_peak_allocated_bytes": r"^(?:peak memory (?:allocated|consumption): |Peak memory usage: )([1-9][\d.]*) ?MiB",
    "mem_peak_reserved_bytes": r"^peak memory allocated: \d+ MiB reserved: (\d+) MiB",
}


def peaks(lines: pl.DataFrame) -> pl.DataFrame:
    """PEAK_FACTS of peak memory, which modded-nanogpt prints at the end."""
    lines = without_logger(lines, _BEGINNINGS)
    return computed_peaks(
        lines, {name: number(pl.col("text").str.extract(pattern)) * 2**20 for name, pattern in _PEAKS.items()}
    )


# Nothing but DDP: every process has its own batch.
_RANKS = pl.coalesce(headers.NUM_GPUS, whole("gpus_per_node") * whole("num_nodes").fill_null(1))

COMBINED = (
    *headers.COMBINED,
    CombinedSetting("dp", _RANKS, ("num_gpus", "gpus_per_node"), setting_source="derived"),
)


def _finalize(facts: Facts) -> Facts:
    return lectures.finalize(speedruns.finalize(headers.with_devices(facts)))


DIALECT = Dialect(
    name="nanogpt",
    module=__name__,
    # Loss and time of a home-made script are written otherwise: nanoGPT puts a number before `, time `.
    signature_literals=(
        *("ms, mfu ", "ms | mfu ", "tokens per iteration will be:", "num decayed parameter tensors:"),
        *(": train loss ", "ms step_avg:", " train_time:", " trl:", " tel:", "ms | tok/sec: "),
        *("Tokens / micro-batch / rank: ", chats.SIGNATURE),
        *("% bf16 MFU | ", "% fp32 MFU | ", " | train loss ", " tps_per_gpu="),
        *(f"{digit}, time " for digit in range(10)),
    ),
    steps=steps,
    settings=settings,
    peaks=peaks,
    events=events,
    combined=COMBINED,
    finalize=_finalize,
    literals_by_function={
        "steps": ("iter ", "step:", "step=", " trl:", "| loss", "| train loss", ": train loss ", chats.LITERAL),
        "events": (" val_loss:", "Total training time: ", chats.END_LITERAL),
        "settings": (
            "Overriding: ",
            *(f"{name} = " for name in _NAMES),
            "number of parameters: ",
            "tokens per iteration will be:",
            "[Gloo] Rank ",
            *wordplay.SETTING_LITERALS,
            *headers.LITERALS,
            *llmc.SETTING_LITERALS,
            *environment.LITERALS,
        ),
        "peaks": ("peak memory ", "Peak memory usage: "),
    },
)
