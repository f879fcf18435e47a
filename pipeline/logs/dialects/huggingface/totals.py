"""Totals that a training prints at its end, and what follows: planned steps, batch, mean step time, throughput.

Formats: the final dict (transformers/trainer.py; see `sidecars.speed_metrics` for its numbers) and the table that
scripts print of it (trainer_pt_utils.py log_metrics: `  train_samples_per_second =     13.007`, times as 0:00:07.38).
The run time counts from the beginning, or from where a checkpoint was taken up: the dict's mean loss is that of the
logged ones only where nothing was left out of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.logs.dialects.huggingface import epochs
from sweepscope.pipeline.logs.dialects.huggingface.dicts import FINAL, QUOTED_NUMBER
from sweepscope.pipeline.logs.extractors import computed_settings, named_settings
from sweepscope.pipeline.logs.facts import SETTING_FACTS, Facts, conform
from sweepscope.pipeline.logs.sidecars.speed_metrics import Span, Speed, clock, is_whole, rounded, tokens_of_step

_DECIMALS = {
    "train_runtime": 4,
    "train_samples_per_second": 3,
    "train_steps_per_second": 3,
    "epoch": 2,
    "train_loss": 4,
}
"""Names of the final dict, and the decimals to which the Trainer rounds them at least."""

_RATE_OFF = 0.01
"""By which a rate may be off, as a share of it."""

_FEW = 3
"""Learning rates from which on the last one differs visibly from a constant 0."""

_DICT, _TABLE = "arg:dict_", "arg:table_"
LITERALS = ("train_samples_per_second", "train_steps_per_second", "train_runtime", "  train_loss  ", "  epoch    ")
_ROW = r"^(?:.*>> +)?\s*(epoch|train_\w+) +=  *([\d.,:e+-]+|[\d.]+ days?, [\d:.]+)\s*$"


def stated(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of final dicts and tables, as printed, quotes included; names that are no columns of `runs`."""
    text = pl.col("text")
    final = lines.filter(text.str.contains(FINAL))
    values = {f"{_DICT}{name}": text.str.extract(rf"['\"]{name}['\"]: ({QUOTED_NUMBER})") for name in _DECIMALS}
    table = named_settings(lines, _ROW, {name: f"{_TABLE}{name}" for name in _DECIMALS}, setting_source="log_line")
    return pl.concat([computed_settings(final, values), table])


@dataclass(frozen=True)
class End:
    """What one training states at its end.

    Attributes:
        line_no: the first line that states something.
        spans: the values by their names in the dict, as exact as they are printed; None is unknown.
        speed: what follows from them.
        is_batch_stated: the log prints the batch elsewhere.
    """

    line_no: int
    spans: Mapping[str, Span | None]
    speed: Speed
    is_batch_stated: bool


def ends(rows: pl.DataFrame, facts: Facts) -> dict[tuple[int, int], End]:
    """The end of each training that states one, by source and training.

    Args:
        rows: facts by training (`trainings.in_trainings`).
        facts: of the same files, for their settings.
    """
    name = pl.col("name")
    mine = facts.settings.filter(name.str.starts_with(_DICT) | name.str.starts_with(_TABLE))
    if mine.is_empty():
        return {}
    trainings = rows.group_by("source", "training").agg(pl.col("line_no").min(), pl.col("total").max())
    placed = mine.sort("source", "line_no", maintain_order=True).join_asof(
        trainings.sort("source", "line_no"), on="line_no", by="source", strategy="backward", check_sortedness=False
    )
    batches = facts.settings.filter(name.is_in(_BATCH)).partition_by("source", as_dict=True)
    stated_batch = {source: _first(part) for (source,), part in batches.items()}
    found = {}
    for (source, training), part in (
        placed.drop_nulls("training").partition_by("source", "training", as_dict=True).items()
    ):
        values, settings = _first(part), stated_batch.get(source, {})
        spans = {word: _span(word, values) for word in _DECIMALS}
        speed = Speed(
            runtime_s=spans["train_runtime"],
            samples_per_s=spans["train_samples_per_second"],
            steps_per_s=spans["train_steps_per_second"],
            epoch=spans["epoch"],
            steps=part["total"][0],
            unit=math.prod(int(settings[word]) for word in _BATCH[:2] if settings.get(word, "").isdecimal()) or 1,
        )
        found[int(source), int(training)] = End(int(part["line_no"][0]), spans, speed, _BATCH[2] in settings)
    return found


_BATCH = ("mbs", "gas", "arg:total_batch")


def _first(settings: pl.DataFrame) -> dict[str, str]:
    """The first value of each setting: every rank may print the final dict."""
    first: dict[str, str] = {}
    for name, value in zip(settings["name"].to_list(), settings["value"].to_list(), strict=True):
        first.setdefault(name, value)
    return first


def concluded(rows: pl.DataFrame, dicts: pl.DataFrame, known: Mapping[tuple[int, int], End]) -> pl.DataFrame:
    """SETTING_FACTS of what follows from the ends of the trainings.

    Args:
        rows: facts by training (`trainings.in_trainings`).
        dicts: the log dicts among them, with their steps and `tokens_off`.
        known: `ends` of the same trainings.
    """
    each, logged = (
        frame.partition_by("source", "training", as_dict=True) for frame in (rows, dicts.drop_nulls("step"))
    )
    found = [
        {"source": training[0], "line_no": end.line_no, "name": name, "value": str(value)}
        for training, end in known.items()
        for name, value in _of_training(
            end, each.get(training, rows.clear()), logged.get(training, dicts.clear())
        ).items()
        if value
    ]
    if not found:
        return pl.DataFrame(schema=SETTING_FACTS)
    return conform(pl.DataFrame(found).with_columns(setting_source=pl.lit("log_line")), SETTING_FACTS)


def _of_training(end: End, rows: pl.DataFrame, dicts: pl.DataFrame) -> dict[str, object]:
    steps = None if end.speed.steps else end.speed.steps_planned() or _all_logged(end, dicts) or _end_of_schedule(dicts)
    batch = None if end.is_batch_stated else end.speed.total_batch()
    return {"steps_planned": steps, "arg:total_batch": batch, **_means(end, rows, dicts)}


def _all_logged(end: End, dicts: pl.DataFrame) -> int | None:
    """Planned steps of a training that logged each of them, as far as its totals say."""
    count = dicts.height
    is_each = count > 1 and dicts["step"].to_list() == list(range(1, count + 1)) and not _is_ordinal(dicts)
    return count if is_each and end.speed.last_logged(count) == count else None


def _end_of_schedule(dicts: pl.DataFrame) -> int | None:
    """Planned steps of a training whose last log dict has come to a learning rate of 0, as the Trainer's schedules do
    with the last planned step (optimization.py: `linear`, `cosine`), and of which no step is an ordinal."""
    rates = dicts.drop_nulls("learning_rate")
    if rates.height < _FEW or _is_ordinal(dicts) or rates["step"][-1] != dicts["step"][-1]:
        return None
    is_end = rates["learning_rate"][-1] == 0 and (rates["learning_rate"][1:-1] > 0).all()
    return int(rates["step"][-1]) if is_end else None


def _is_ordinal(dicts: pl.DataFrame) -> bool:
    return (dicts["step_basis"] == "ordinal").any()


def _means(end: End, rows: pl.DataFrame, dicts: pl.DataFrame) -> dict[str, object]:
    """Tokens of a step, and the mean step time and throughput of a training of which nothing was left out."""
    logged, losses = dicts["step"].to_list(), dicts["loss"].to_list()
    mean_loss, runtime_s = end.spans["train_loss"], end.spans["train_runtime"]
    if _is_ordinal(dicts) or mean_loss is None or not is_whole(logged, losses, mean_loss.middle):
        return {}
    seen = dicts.drop_nulls("consumed_tokens")
    is_exact = seen.height == len(logged) and not (seen["tokens_off"] > 0).any()
    each = tokens_of_step(logged, seen["consumed_tokens"].to_list()) if is_exact else None
    planned = end.speed.steps_planned()
    if planned is None and end.speed.last_logged(len(logged)) == logged[-1]:
        planned = logged[-1]
    planned = planned or _end_of_schedule(dicts)
    done = _steps_done(planned, rows, logged)
    if done is None or runtime_s is None:
        return {"gbs_tokens": each, **_by_rate(end)}
    step_time_s = round(runtime_s.middle / done, 6)
    rate = seen["consumed_tokens"][-1] / seen["step"][-1] / step_time_s if seen.height else 0
    return {
        "gbs_tokens": each,
        "step_time_s": step_time_s,
        "step_time_basis": "whole_run",
        "tokens_per_s": round(rate, 3),
    }


def _by_rate(end: End) -> dict[str, object]:
    """The mean step time by the steps per second, where these are printed to one percent."""
    rate = end.spans["train_steps_per_second"]
    if rate is None or rate.high - rate.low > 2 * _RATE_OFF * rate.middle:
        return {}
    return {"step_time_s": round(1 / rate.middle, 3), "step_time_basis": "whole_run"}


def _steps_done(planned: int | None, rows: pl.DataFrame, logged: Sequence[int]) -> int | None:
    """Steps that the training took: as its bar shows, else those planned unless it stopped logging before."""
    shown = rows.filter("is_bar")["step"].max()
    if isinstance(shown, int) and shown >= logged[-1]:
        return shown
    every = logged[-1] - logged[-2] if len(logged) > 1 else logged[-1]
    return planned if planned is not None and logged[-1] <= planned < logged[-1] + every else None


def _span(name: str, end: Mapping[str, str]) -> Span | None:
    """What a value may be, by dict and table together."""
    of_dict, of_table = end.get(f"{_DICT}{name}"), end.get(f"{_TABLE}{name}")
    found = [
        (epochs.span_of(of_dict) if name == "epoch" else _of_dict(of_dict, _DECIMALS[name])) if of_dict else None,
        (clock(of_table) or _plain(of_table, _DECIMALS[name])) if of_table else None,
    ]
    known = [span for span in found if span is not None]
    return known[0].within(known[-1]) if known else None


def _of_dict(text: str, decimals: int) -> Span | None:
    bare = text.strip("'\"")
    return _plain(bare, decimals, digits=None if bare == text else 4)


def _plain(text: str, decimals: int, digits: int | None = None) -> Span | None:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return rounded(value, max(decimals, len(text.partition(".")[2])) if digits is None else decimals, digits)
