"""What a benchmark of a training prints at its end: mean or median step time, throughput, MFU and peak memory.

A summary is a row of a table of results, with a name in front of each value: names and units mean what they mean there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from sweepscope.pipeline.logs.inference.units import Unit, behind, in_label, number_of
from sweepscope.pipeline.logs.result_tables.cells import in_base_units
from sweepscope.pipeline.logs.result_tables.meanings import OF_STEPS, measured
from sweepscope.pipeline.logs.synonyms import EVALUATION, words

_PAIR = re.compile(
    r"(?<![\w.])(?P<name>[A-Za-z](?:[\w./%-]|[ ](?=[\w(])|\([\w ./%]{1,24}\)){1,60}?)[\"']?"
    r"\s*(?:[:=|│]|=>|->|\.{2,}|\s{2,}|\bis\b)\s*[\"'~]?(?P<value>\d[\d,_]*\.?\d*(?:[eE][-+]?\d+)?)(?![\w.]*[-/:]\d)"
)
_AVERAGES = re.compile(r"\b(?P<mean>avg|average|mean|overall|steady(?: state)?)\b|\b(?P<median>median|p50)\b")
_NEUTRAL = re.compile(r"\b(?:measured|final|total|results?|bench(?:mark)?|train(?:ing)?)\b(?! tok)")
_SPREAD = re.compile(
    r"\b(?:p\d\d?\b(?<!p50)|p999?|std(?:ev|dev)?|min(?:imum)?|var(?:iance)?|warm ?up|first|compile|"
    r"fwd|forward|bwd|backward|optim(?:izer)?|data|load(?:ing|er)?|comm(?:unication)?|target|expected|estimated|theoretical)\b"
)
"""In names of other figures than the typical one of a whole step."""
_LARGEST = re.compile(r"\b(?:max(?:imum)?|peak)\b")
_OTHER_WORK = re.compile(
    r"(?i)\b(?:ttft|tpot|itl|requests?|prompts?|decode|decoding|prefill|qps|max_?new_?tokens|new_tokens|"
    r"generated? tokens|tokens generated|serving|vllm|inference|loglikelihood|lm[-_ ]eval\w*|tokeniz(?:ing|ation)|"
    r"docs/s|documents|busbw|algbw)\b"
)
"""Of benchmarks of inference, of evaluations, of data and of the network, which have tokens/s and batches, too."""
MEASURED_WORDS = (
    r"(?i)(?:step|iter|batch|time|tok|throughput|flop|mfu|tps|tgs|s/it).*[0-9]|[0-9].*(?:tok|flop|/it|/step)"
)
"""Found in any line that prints a time or a rate of a summary."""
_OF_STEP = re.compile(r"\b(?:steps?|iter(?:ation)?s?|it)\b")
_RATE = re.compile(r"(?i)/\s?(?:s|gpu|device)|\bper\b|\b(?:avg|average|mean|median|overall|achieved|throughput|gpu)\b")
"""In lines with a number of operations in a second: lit-gpt's `Measured TFLOPs: 2.81` are those of a batch."""
_SURE = ("mfu_logged", "tflops_per_gpu_logged", "tokens_per_s_per_gpu")
_RATES = ("step_time_s", "tokens_per_s", *_SURE)
_BATCHES = frozenset({"batch", "mbs", "gbs", "gas", "gbs_tokens"})
_SIZES = frozenset({"seq_len", "num_gpus", "num_nodes", "dp", "tp", "pp", "cp", "zero_stage", "model", "recompute"})


@dataclass(frozen=True)
class Figure:
    """One figure of a summary.

    Attributes:
        column: of `runs`.
        value: in the column's unit.
        name: as printed.
        line_no, text: the line.
    """

    column: str
    value: float
    name: str
    line_no: int
    text: str


def summary(lines: Iterable[tuple[int, str]]) -> dict[str, Figure]:
    """The figures that lines state, by column; empty where neither a time nor a rate is among them.

    A median counts more than a mean, and that more than a bare value; of equals the last.

    >>> found = summary([(1, "Average step time : 2.1 s"), (2, "Throughput | 3,900 tokens/s/GPU"), (3, "p99: 2.4 s")])
    >>> {name: figure.value for name, figure in found.items()}
    {'step_time_s': 2.1, 'tokens_per_s_per_gpu': 3900.0}
    """
    best: dict[str, tuple[int, Figure]] = {}
    for line_no, text in lines:
        for sure, figure in _figures(line_no, text):
            if figure.column not in best or best[figure.column][0] <= sure:
                best[figure.column] = sure, figure
    found = {column: figure for column, (_, figure) in best.items()}
    return found if found.keys() & {*_RATES} else {}


def is_of_training(found: dict[str, Figure], settings: Collection[str], texts: Iterable[str]) -> bool:
    """Whether a summary without steps is a training's.

    Something that only steps of a training have is measured, and a batch and something of the model or the layout is
    stated beside it. Benchmarks of inference, of data loaders and of the network are none.

    Args:
        found: `summary` of the lines.
        settings: columns of `runs` that the lines state.
        texts: all lines.
    """
    sure = [found[name] for name in _SURE if name in found]
    is_rate = any(one.column != "tflops_per_gpu_logged" or _RATE.search(one.text) for one in sure)
    is_stated = bool(_BATCHES & {*settings}) and bool(_SIZES & {*settings})
    return (is_rate or names_step_time(found)) and is_stated and not tells_of_other_work(texts)


def names_step_time(found: Mapping[str, Figure]) -> bool:
    """Whether a summary gives the time of what it calls a step or an iteration."""
    return "step_time_s" in found and _OF_STEP.search(words(found["step_time_s"].name)) is not None


def tells_of_other_work(texts: Iterable[str]) -> bool:
    """Whether lines speak of inference, evaluations, data or the network, which have rates, too."""
    return any(_OTHER_WORK.search(text) for text in texts)


def _figures(line_no: int, text: str) -> Iterator[tuple[int, Figure]]:
    """Figures of one line, each with how sure it is."""
    for hit in _PAIR.finditer(text):
        label = words(hit["name"])
        if _SPREAD.search(label) or EVALUATION.search(label):
            continue
        averaged = _AVERAGES.search(label)
        plain = " ".join(_NEUTRAL.sub(" ", _AVERAGES.sub(" ", label)).split())
        _, suffix, unit = behind(text, hit.end("value"))
        named, of_label = in_label(plain)
        column = _column(named if of_label else plain, unit or of_label)
        number = number_of(f"{hit['value']}{suffix}")
        if column is None or not number or (_LARGEST.search(label) and not column.startswith("mem_")):
            continue
        word = _word(text, hit.end("value"), unit) or (of_label.word if of_label and not unit else "")
        value = in_base_units(column, number, "" if word == "human" else word)
        sure = 0 if averaged is None else 2 if averaged["median"] else 1
        yield sure, Figure(column, value, hit["name"], line_no, text)


def _column(label: str, unit: Unit | None) -> str | None:
    """The column of `runs` that a label names, with the unit beside it or behind the value."""
    if unit and unit.quantity == "other rate":
        return None
    of_device = measured(label, None)  # `throughput per GPU`, of which the unit says tokens/s
    column = of_device if of_device == "tokens_per_s_per_gpu" else measured(label, unit)
    return OF_STEPS[column][0] if column in ("mfu", "mem_allocated", "mem_reserved", *_OF_UNITS) else None


_OF_UNITS = ("step_time", "tokens_per_s", "tokens_per_s_per_gpu", "tflops_per_gpu")


def _word(text: str, position: int, unit: Unit | None) -> str:
    """The word of the unit behind a number; of sizes that which is printed."""
    if unit is None:
        return ""
    printed = re.match(r"\s?([KMGT]i?B)", text[position:])
    return printed[1] if unit.word == "size" and printed else unit.word
