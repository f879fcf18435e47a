"""Steps of an epoch whose number stands in a line above them: `Epoch 3/10`, then `120/391 [=>...]` as of Keras.

Or below them, in a line that sums the epoch up: `step 320/328 loss 2.31`, then `Epoch 3/10 - train loss 2.35`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from sweepscope.pipeline.logs.declared.line_template import Template
from sweepscope.pipeline.logs.declared.rules import Rule
from sweepscope.pipeline.logs.facts import SETTING_FACTS, Facts, conform, in_order

_EPOCH, _EPOCHS = "arg:epoch above", "arg:epochs above"


@dataclass(frozen=True)
class EpochLines:
    """Lines above the steps of an epoch, or below them.

    Attributes:
        lines: their templates.
        first_epoch: the number of the first one.
        are_below: they stand below the steps.
    """

    lines: tuple[Template, ...]
    first_epoch: int
    are_below: bool = False

    @classmethod
    def of(cls, rules: Sequence[Rule]) -> EpochLines:
        """Those of some rules of steps."""
        mine = [rule for rule in rules if rule.epoch_line]
        lines = tuple(rule.epoch_line for rule in mine if rule.epoch_line)
        are_below = any(rule.epoch_line_is == "below" for rule in mine)
        return cls(lines, min((rule.first_epoch for rule in mine), default=0), are_below)

    @property
    def literals(self) -> tuple[str, ...]:
        """Literals of which each of the lines holds one."""
        return tuple(line.longest_word for line in self.lines)

    def read(self, lines: pl.DataFrame) -> pl.DataFrame:
        """SETTING_FACTS with what the lines tell, for `counted`."""
        text = pl.col("text")
        parts = [pl.DataFrame(schema=SETTING_FACTS)]
        for line in self.lines:
            groups = text.str.extract_groups(line.regex)
            near = lines.filter(text.str.contains(line.longest_word, literal=True)).with_columns(values=groups)
            for name, column in ((_EPOCH, "epoch"), (_EPOCHS, "epochs")):
                if any(field.target and field.target.column == column for field in line.fields):
                    value = near.with_columns(name=pl.lit(name), value=pl.col("values").struct.field(column))
                    facts = value.drop_nulls("value").with_columns(setting_source=pl.lit("log_line"))
                    parts.append(conform(facts, SETTING_FACTS))
        return pl.concat(parts)

    def counted(self, facts: Facts) -> Facts:
        """`facts` with steps that go on over the epochs of a file, without what `read` has found.

        An epoch is as long as its lines say, else as the largest number in the file, and one more interval of steps
        that are counted from 0: of 100 steps with a line every ten, the last line has the number 90. Where steps begin
        anew without a line of an epoch, and an epoch has another length from there on, another training has begun.
        """
        number = pl.col("value").cast(pl.Int64, strict=False)
        settings = facts.settings.with_columns(number).sort("source", "line_no")
        epochs = settings.filter(pl.col("name") == _EPOCH).select("source", "line_no", epoch="value")
        planned = settings.filter(pl.col("name") == _EPOCHS).group_by("source").agg(epochs=pl.col("value").last())
        rest = facts.settings.filter(~pl.col("name").is_in([_EPOCH, _EPOCHS]))
        rows = self._with_epoch(in_order(facts.steps), epochs)
        rows = rows.join(planned, on="source", how="left", maintain_order="left")
        step = pl.col("step")
        interval = step.diff().over("source")
        interval = interval.filter(interval > 0).min()
        largest = step.max()
        largest = (
            pl.when(step.min() != 0)
            .then(largest)
            .when(largest % interval == 0)
            .then(largest + interval)
            .otherwise(largest + 1)
            .over("source")
        )
        length = pl.coalesce("steps_planned", pl.col("steps_planned").max().over("source"), largest)
        done = (pl.col("epoch") - self.first_epoch).fill_null(0).clip(lower_bound=0)
        counted = rows.with_columns(step=step + done * length, steps_planned=pl.col("epochs") * length)
        return replace(facts, steps=conform(counted, facts.steps.schema), settings=rest)

    def _with_epoch(self, steps: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
        """`steps` with `epoch`; behind the last line below an epoch, the next one has begun."""
        above = steps.join_asof(
            epochs.with_columns(heading="line_no"),
            on="line_no",
            by="source",
            strategy="backward",
            check_sortedness=False,
        )
        is_anew = (pl.col("step") < pl.col("step").shift(1)) & (
            pl.col("steps_planned") != pl.col("steps_planned").shift(1)
        )
        is_anew = is_anew & (pl.col("heading") == pl.col("heading").shift(1))
        anew = above.with_columns(anew=is_anew.fill_null(value=False).cum_sum().over("source", "heading"))
        above = anew.with_columns(epoch=pl.when(pl.col("anew") == 0).then("epoch")).drop("heading", "anew")
        if not self.are_below:
            return above
        ahead = epochs.rename({"epoch": "ends"})
        below = above.join_asof(ahead, on="line_no", by="source", strategy="forward", check_sortedness=False)
        return below.with_columns(epoch=pl.coalesce("ends", pl.col("epoch") + 1)).drop("ends")
