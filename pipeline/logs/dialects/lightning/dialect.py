"""Lightning's Trainer under a custom script, and what NeMo inherits of it.

Formats: `bars`, `rich_bars` and `metrics_csv`; lightning/pytorch/trainer/setup.py (`GPU available: True (cuda), used:
True`), fabric/utilities/distributed.py (`All distributed processes registered. Starting with 2 processes`, printed for
more than one), utilities/model_summary and callbacks/rich_model_summary.py (`1.3 M     Total params`, `Total params:
1.3 M`), utilities/rank_zero (`Trainer.fit` stopped). What is called the loss is up to the script.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect, History
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.dialects.lightning import bars, batches, metrics_csv, rich_bars
from sweepscope.pipeline.logs.expressions import whole
from sweepscope.pipeline.logs.extractors import computed_settings, matched_settings, milestones
from sweepscope.pipeline.logs.facts import Facts
from sweepscope.pipeline.logs.sidecars import hparams
from sweepscope.pipeline.text.quantities import human, number

SIGNATURES = (
    ", v_num=",
    "it/s v_num: ",
    "GPU available: True",
    "GPU available: False",
    "LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: ",
    "`Trainer.fit` stopped: ",
    "Total estimated model params size (MB)",
)
"""Printed under any script: dialects on top of Lightning count them too, so that their own literals decide."""


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of bars with a loss, which `finalize` makes steps of; open ones are unparsed."""
    return pl.concat([bars.steps(lines), rich_bars.steps(lines)])


def finalize(facts: Facts) -> Facts:
    """Bars with their steps, those of several lines joined, and what follows of batches."""
    return batches.steps_of(rich_bars.rejoined(facts))


PROCESSES = r"All distributed processes registered\. Starting with (\d+) processes"
_STOPPED = r"`Trainer\.fit` stopped: `max_steps=(\d+)` reached"
_LINE = {
    "num_gpus": PROCESSES,
    "steps_planned": _STOPPED,
    batches.MAX_STEPS: _STOPPED,
    "arg:gpu_used": r"^GPU available: .*, used: (True|False)",
    "arg:other_cores": r"^(?:TPU|IPU|HPU) available: True, using: ([1-9]\d*) ",
}
_COUNT = r"(?:^|\| )(?:Total params: +([\d.,]+(?: [KMBT])?) *|([\d.,]+(?: [KMBT])?) +Total params)\s*$"
_MEGABYTES = r"^(?:Total estimated model params size \(MB\): +([\d.,]+)|([\d.,]+) +Total estimated model params size)"
END = r"`Trainer\.fit` stopped: `max_(?:steps|epochs)=\d+` reached"


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the number of processes, planned steps, the model's size, and the machine."""
    text = pl.col("text")
    count, megabytes = (pl.coalesce(*(text.str.extract(form, n) for n in (1, 2))) for form in (_COUNT, _MEGABYTES))
    sizes = {"arg:params": human(count.str.replace_all(",", "", literal=True))}
    shown = rich_bars.planned(lines)
    guessed = {"steps_planned": pl.col("total"), "is_plan_guessed": pl.lit("true")} if shown.height else {}
    return pl.concat(
        [
            matched_settings(lines, _LINE.items()),
            computed_settings(lines, sizes),
            computed_settings(lines, {"arg:params_kb": number(megabytes) * 1000}),
            *([computed_settings(shown, guessed)] if guessed else []),
            environment.settings(lines),
        ]
    )


# The size is exact to a thousandth of a MB, and counts four bytes a parameter, or two where weights are of 16 bits.
_PARAMS = pl.coalesce(
    *(
        pl.when((whole("arg:params_kb") * 1000 / width / whole("arg:params")).is_between(0.95, 1.06)).then(
            whole("arg:params_kb") * 1000 // width
        )
        for width in (4, 2)
    ),
    whole("arg:params"),
)
_HAS_BEGUN = pl.col("arg:gpu_used").is_not_null() & pl.col("arg:params_kb").is_not_null()
_IS_ALONE = _HAS_BEGUN & pl.col("num_gpus").is_null() & pl.col("arg:other_cores").is_null()

COMBINED = (
    CombinedSetting("params", _PARAMS, ("arg:params",)),
    # Several processes say so before the model is shown.
    CombinedSetting("num_gpus", pl.when(_IS_ALONE).then(1), ("arg:gpu_used",)),
    CombinedSetting("dp", whole("num_gpus"), ("num_gpus",), setting_source="derived"),
    CombinedSetting(
        "accelerator",
        pl.when((pl.col("arg:gpu_used") == "False") & pl.col("arg:other_cores").is_null()).then(pl.lit("CPU")),
        ("arg:gpu_used",),
    ),
)

DIALECT = Dialect(
    name="lightning",
    module=__name__,
    signature_literals=SIGNATURES,
    steps=steps,
    settings=settings,
    events=milestones(launch=PROCESSES, training_end=END),
    finalize=finalize,
    combined=COMBINED,
    sidecars=hparams.LIGHTNING,
    histories=(History("metrics.csv", metrics_csv.read),),
    literals_by_function={
        "steps": ("loss=", "loss_step=", *rich_bars.LITERALS),
        "settings": (
            *("All distributed processes registered", "`Trainer.fit` stopped", "PU available: ", "Total params"),
            *("Total estimated model params size", "/-2 "),
            *environment.LITERALS,
        ),
        "events": ("All distributed processes registered", "`Trainer.fit` stopped"),
    },
)
