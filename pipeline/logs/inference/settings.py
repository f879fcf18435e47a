"""The settings that a log states, as rules of a dialect file: of several candidates those that agree with each other.

A log may state a setting under many names and in many forms. The surest name counts; values of one sureness that differ
are decided by what has to hold (dp x tp x pp x cp = GPUs, mbs x gas x dp = batch), or left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isclose, prod

from sweepscope.pipeline.logs.inference.setting_values import COORDINATES
from sweepscope.pipeline.logs.inference.stated import Stated
from sweepscope.pipeline.logs.synonyms import CAPACITY, words
from sweepscope.schemas.thresholds import LABEL_TOLERANCE

_MOST_VALUES = 4
_NEAR = 1
_MANY_SEQUENCES = 32
"""Of which a batch consists more likely than of as many times the sequence's length."""

_SHARE = re.compile(r"^[^:;]{0,20}?(?<![\d.])(?!100(?:\.0*)?\s?%)\d{1,2}(?:\.\d+)?\s?%")
"""Of the whole, behind a number: less than all of it."""

_OF_BATCH = ("seq_len", "dp", "num_gpus", "tp", "pp", "cp", "gas")
_SAME_BATCH = 0.05
"""By which the tokens of a step, of two figures that were rounded, may miss those of a batch."""


@dataclass(frozen=True)
class Chosen:
    """The value of a column: where it is stated, or, without `is_used`, why it is not believed."""

    column: str
    value: str
    sources: tuple[Stated, ...]
    confidence: str
    reason: str
    is_used: bool = True


def choose(found: Iterable[Stated], step_tokens: float | None = None) -> list[Chosen]:
    """One value per column, those that are not believed too.

    Args:
        found: what is stated.
        step_tokens: tokens that the whole job takes in a step, where its lines tell them.
    """
    by_column: dict[str, list[Stated]] = {}
    ones = list(found)
    places = {_printed_as(one) for one in ones if one.column in COORDINATES and one.value == "0"}
    for one in ones:
        if one.column not in COORDINATES or _printed_as(one) not in places:
            by_column.setdefault(one.column, []).append(one)
    ranked = {column: _ranked(ones) for column, ones in _of_shards(by_column).items()}
    ranked = _of_whole_job(_exact(_of_whole_model(_batches(_within_capacity(ranked), step_tokens))))
    decided = _decide(ranked)
    chosen = []
    for column, values in ranked.items():
        value = decided.get(column)
        if value is None:
            best = values[0]
            shown = ", ".join(sorted({one.value for one in values}))
            chosen.append(Chosen(column, best.value, (best,), "low", f"stated as {shown}", is_used=False))
            continue
        sources = tuple(one for one in values if one.value == value)
        sure = min(one.sure for one in sources)
        others = sorted({one.value for one in values} - {value})
        reason = f"stated as {sources[0].name or sources[0].printed!r}" + (
            f"; elsewhere {', '.join(others)}" if others else ""
        )
        chosen.append(Chosen(column, value, sources, "high" if sure == 0 and not others else "medium", reason))
    return chosen


def _printed_as(one: Stated) -> tuple[str, str]:
    return one.name, one.separator.strip()


def _of_shards(by_column: Mapping[str, list[Stated]]) -> dict[str, list[Stated]]:
    """The candidates with the ranks that share one copy of the states as all data parallel ones, where no other copy is
    stated. Where one is, dp is the product (`runs.settings.SHARDED`)."""
    found = dict(by_column)
    if {one.value for one in found.get("dp_replicate", ())} <= {"1"}:
        shards = found.pop("dp_shard", [])
        found["dp"] = [*found.get("dp", ()), *(replace(one, column="dp", sure=one.sure + 1) for one in shards)]
    return {column: ones for column, ones in found.items() if ones}


def _ranked(ones: Sequence[Stated]) -> list[Stated]:
    """The surest first; of one name and value, the first."""
    seen: dict[tuple[str, str, str, str], Stated] = {}
    for one in ones:
        seen.setdefault((one.name, one.form, one.separator.strip() or " ", one.value), one)
    return sorted(seen.values(), key=lambda one: one.sure)


def _surest(values: Sequence[Stated]) -> list[str]:
    """Different values of the surest names, and of those that are hardly less sure."""
    least = min(one.sure for one in values)
    near = list(dict.fromkeys(one.value for one in values if one.sure <= least + _NEAR))
    best = {one.value for one in values if one.sure == least}
    names = {value: {words(one.name) for one in values if one.value == value} for value in near}
    # Two names agree, and only one that is less sure says otherwise.
    is_plain = len(best) == 1 and all(len(names[value]) == 1 for value in near if value not in best)
    return [value for value in near if value in best] if is_plain and len(names[near[0]]) > 1 else near


def _within_capacity(ranked: Mapping[str, list[Stated]]) -> dict[str, list[Stated]]:
    """The candidates without the positions that a model has, where sequences of another length are stated."""
    lengths = {one.value for one in ranked.get("seq_len", ()) if not re.fullmatch(CAPACITY, words(one.name))}
    kept = [one for one in ranked.get("seq_len", ()) if one.value in lengths]
    return {**ranked, "seq_len": kept} if kept else dict(ranked)


def _of_whole_model(ranked: Mapping[str, list[Stated]]) -> dict[str, list[Stated]]:
    """The candidates without parameters of a part, where those of the whole model are stated: "total", "trainable".

    A part is also what a line gives as a share of all: `Trainable parameters: 11,796,480 (0.77% of 1,533,189,120)`.
    """
    named = [(set(words(one.name).split()), one) for one in ranked.get("params", ())]
    total = [one for names, one in named if "total" in names and "trainable" not in names]
    whole = total or [one for names, one in named if "trainable" not in names]
    parts = {one.value for names, one in named if "trainable" in names and _SHARE.match(one.text[one.end :])}
    kept = whole or [one for _, one in named if one.value not in parts]
    return {column: ones for column, ones in {**ranked, "params": kept}.items() if ones}


def _exact(ranked: Mapping[str, list[Stated]]) -> dict[str, list[Stated]]:
    """The candidates without parameters that are rounded, where the same number is stated with more digits.

    `--model-size 7b` above `6.74 B parameters`.
    """

    def is_rounded(one: Stated, others: Sequence[Stated]) -> bool:
        digits = len(one.value.rstrip("0"))
        return any(
            len(other.value.rstrip("0")) > digits and isclose(int(one.value), int(other.value), rel_tol=LABEL_TOLERANCE)
            for other in others
        )

    kept = {
        column: [one for one in ranked[column] if not is_rounded(one, ranked[column])]
        for column in ("params", "active_params")
        if column in ranked
    }
    return {**ranked, **kept}


def _of_whole_job(ranked: Mapping[str, list[Stated]]) -> dict[str, list[Stated]]:
    """The candidates without GPUs that are fewer than a node has processes: those that one process sees.

    `device: cuda:3 n_gpu: 1, distributed training: True` of transformers' older examples, below `--nproc_per_node=8`.
    """
    least = min((int(one.value) for one in ranked.get("gpus_per_node", ())), default=0)
    kept = [one for one in ranked.get("num_gpus", ()) if int(one.value) >= least]
    return {column: values for column, values in {**ranked, "num_gpus": kept}.items() if values}


def _batches(ranked: Mapping[str, list[Stated]], step_tokens: float | None) -> dict[str, list[Stated]]:
    """The candidates with a batch of unknown kind as one process's or the whole job's, and tokens told from samples."""
    found = dict(ranked)
    plain = found.pop("batch", [])
    if "mbs" in found:  # beside it, the batch of a device is that of a whole step
        micro_ones = [one for one in found["mbs"] if "micro" in words(one.name)]
        found["mbs"] = micro_ones or found["mbs"]
    if plain:
        values = _surest(plain)
        micro = [int(value) for value in _surest(found["mbs"])] if "mbs" in found else []
        whole = [int(value) for value in _surest(found["gbs"])] if "gbs" in found else []
        kept = [one for one in plain if one.value in values]
        if (
            micro
            and not whole
            and all(int(one.value) > value and int(one.value) % value == 0 for one in kept for value in micro)
        ):
            found["gbs"] = [replace(one, column="gbs", sure=one.sure + 1) for one in kept]
        elif not micro and all(value % int(one.value) == 0 for one in kept for value in whole):
            kind = (None if whole else _kind_of_batch(kept, found, step_tokens)) or "mbs"
            found[kind] = [replace(one, column=kind, sure=one.sure + 1) for one in kept]
    lengths = [int(value) for value in _surest(found["seq_len"])] if "seq_len" in found else []
    if "gbs" in found and lengths and "mbs" in found:
        tokens = [one for one in found["gbs"] if int(one.value) >= max(lengths) * int(_surest(found["mbs"])[0])]
        tokens = [one for one in tokens if "total" in one.name.lower() and int(one.value) % lengths[0] == 0]
        if tokens:
            found["gbs"] = [one for one in found["gbs"] if one not in tokens]
            found.setdefault("gbs_tokens", []).extend(replace(one, column="gbs_tokens") for one in tokens)
    elif "gbs" in found and lengths:
        found |= _totals(found["gbs"], lengths, found.get("gbs_tokens", []))
    return {column: values for column, values in found.items() if values}


def _kind_of_batch(plain: Sequence[Stated], found: Mapping[str, list[Stated]], step_tokens: float | None) -> str | None:
    """`gbs` or `mbs`, whichever goes with the tokens of a step; None where neither does, or the other one may, too."""
    stated = {column: {int(one.value) for one in found.get(column, ()) if one.value.isdigit()} for column in _OF_BATCH}
    sizes, lengths = {int(one.value) for one in plain}, stated.pop("seq_len")
    if not step_tokens or len(sizes) != 1 or len(lengths) != 1 or any(len(values) > 1 for values in stated.values()):
        return None
    size, sequences = sizes.pop(), step_tokens / lengths.pop()
    known = {column: values.pop() for column, values in stated.items() if values}
    ways = prod(known.get(column, 1) for column in ("tp", "pp", "cp"))
    replicas = known.get("dp") or (known["num_gpus"] / ways if "num_gpus" in known else None)
    fits = {"gbs": size, **({"mbs": size * replicas * known.get("gas", 1)} if replicas else {})}
    fitting = [kind for kind, whole in fits.items() if isclose(whole, sequences, rel_tol=_SAME_BATCH)]
    return fitting[0] if fitting else None


def _totals(whole: Sequence[Stated], lengths: Sequence[int], tokens: Sequence[Stated]) -> dict[str, list[Stated]]:
    """Batches of the whole job, those of tokens apart where no process's batch tells: a "total" of whole sequences.

    One of many sequences is of tokens. One of few may be either, and is left out.
    """
    unclear = [
        one
        for one in whole
        if "total" in one.name.lower() and int(one.value) >= max(lengths) and int(one.value) % lengths[0] == 0
    ]
    sure = [one for one in unclear if int(one.value) >= _MANY_SEQUENCES * max(lengths)]
    kept = [one for one in whole if one not in unclear]
    return {"gbs": kept, "gbs_tokens": [*tokens, *(replace(one, column="gbs_tokens") for one in sure)]}


def _decide(ranked: Mapping[str, list[Stated]]) -> dict[str, str]:
    """The value of each column whose surest values agree, or only one of which goes with those of other columns."""
    decided = {column: _surest(values)[0] for column, values in ranked.items() if len(_surest(values)) == 1}
    for law in _LAWS:
        if not {*law.needed} <= ranked.keys():
            continue
        open_ = [column for column in (*law.needed, *law.optional) if column in ranked]
        if all(column in decided for column in open_) and law.holds({column: int(decided[column]) for column in open_}):
            continue
        choices = [list(dict.fromkeys(one.value for one in ranked[column]))[:_MOST_VALUES] for column in open_]
        fitting = [values for values in product(*choices) if law.holds(dict(zip(open_, map(int, values), strict=True)))]
        points = [_points(open_, values, ranked) for values in fitting]
        best = [values for values, one in zip(fitting, points, strict=True) if one == min(points)]
        if len(best) == 1:
            decided |= dict(zip(open_, best[0], strict=True))
    return decided


def _points(columns: Sequence[str], values: Sequence[str], ranked: Mapping[str, list[Stated]]) -> int:
    """How unsure a choice is: the sureness of its values."""
    return sum(
        min(one.sure for one in ranked[column] if one.value == value)
        for column, value in zip(columns, values, strict=True)
    )


@dataclass(frozen=True)
class _Law:
    """What has to hold between columns, of which the `optional` ones may be unknown."""

    needed: tuple[str, ...]
    optional: tuple[str, ...]
    holds: Callable[[Mapping[str, int]], bool]


_LAWS = (
    _Law(
        ("num_gpus", "dp"),
        ("tp", "pp", "cp"),
        lambda values: prod(values.get(name, 1) for name in ("dp", "tp", "pp", "cp")) == values["num_gpus"],
    ),
    _Law(
        ("gbs", "mbs", "dp"),
        ("gas",),
        lambda values: values["mbs"] * values.get("gas", 1) * values["dp"] == values["gbs"],
    ),
)
