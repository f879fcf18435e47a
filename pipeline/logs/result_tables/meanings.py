"""What the columns of a table of runs mean: by the words of their headers, and by their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sweepscope.pipeline.logs.inference.units import Unit, in_label
from sweepscope.pipeline.logs.result_tables.cells import amount_of, composed, is_empty, word_of
from sweepscope.pipeline.logs.result_tables.endings import ending
from sweepscope.pipeline.logs.sidecars.folder_name import read_folder_name
from sweepscope.pipeline.logs.synonyms import AMBIGUOUS_BATCH, FLAGS, setting_of, step_columns, words

LAYOUT = (
    *("dp", "tp", "pp", "cp", "ep", "vpp", "mbs", "gas", "gbs", "batch", "gbs_tokens", "zero_stage", "recompute"),
    *("num_gpus", "num_nodes", "seq_len", "layout"),
)
"""Meanings that make a table one of layouts."""
RESULTS = (
    *("step_time_s", "tokens_per_s", "tokens_per_s_per_gpu", "mfu_logged", "tflops_per_gpu_logged"),
    *("mem_peak_allocated_bytes", "mem_peak_reserved_bytes", "samples_per_s", "status"),
)
"""Meanings that make its rows runs, which a table of what is planned has none of."""
MEASURES = (*RESULTS, "last_loss", "last_step", "gpu_hours", "params")
"""Meanings whose cells are amounts, or words for the lack of one."""

OF_STEPS: Mapping[str, tuple[str, int]] = {
    "step_time": ("step_time_s", 0),
    "tokens_per_s": ("tokens_per_s", 0),
    "tokens_per_s_per_gpu": ("tokens_per_s_per_gpu", 0),
    "mfu": ("mfu_logged", 0),
    "tflops_per_gpu": ("tflops_per_gpu_logged", 0),
    "mem_reserved": ("mem_peak_reserved_bytes", 0),
    "mem_allocated": ("mem_peak_allocated_bytes", 1),
    "loss": ("last_loss", 2),
    "step": ("last_step", 0),
}
"""Columns of `steps` to those of `runs`, and the least sure name that is believed at the head of a table of runs."""
_OF_QUANTITY = {"bytes": {"mem_allocated", "mem_reserved"}, "time": {"step_time"}}
_NAMES = {
    "status": r"(?:run |job |exit |end )?(?:status|result|outcome|state)|success|succeeded|ok|exit code|error|failure",
    "job_id": r"(?:slurm |pbs |lsf )?job ?id|slurm job",
    "gpu_hours": r"(?:total )?(?:gpu|device|accelerator) ?(?:hours|hrs|h)",
    "num_nodes": r"nodes|hosts|machines",
    "framework": r"framework|trainer|stack|codebase",
    "accelerator": r"gpus?|hardware|hw|device|card|chip|accelerators?",
    "cluster": r"cluster|partition",
}
_NAMED = {column: re.compile(form) for column, form in _NAMES.items()}
_BATCH = re.compile(AMBIGUOUS_BATCH)
_THOUSANDS = re.compile(r"(?<![A-Za-z])([kKM])[ _-]?(?=tok)")
_PARAMETERS = re.compile(r"(?:.* )?(?:params?|parameters|model size) ([bm])")
_SECTION = re.compile(
    r"(?i)^(?:mesh|config|cfg|conf|args?|params?|hparams?|settings?|parallel(?:ism)?|run|results?|perf(?:ormance)?|"
    r"throughput|speed|timing|summary|stats|metrics|hw|hardware|system)[._/ -](?=[a-z])"
)
"""In front of a name: where somebody's script has kept it."""
_MANY = {"k": 1e3, "K": 1e3, "M": 1e6, "m": 1e6, "b": 1e9}


@dataclass(frozen=True)
class Meaning:
    """What a column holds.

    Attributes:
        name: its header, as it is printed.
        column: of `runs`; or `batch`, `layout`, `samples_per_s`, which rows are completed from.
        unit: a word of `inference.units`; "" for the column's own.
        factor: times which its numbers are meant: of thousands, of billions.
        sure: from 0 for the surest on.
    """

    name: str
    column: str
    unit: str = ""
    factor: float = 1.0
    sure: int = 0


_STATISTIC = re.compile("^(?:mean|avg|average|median|p50|typical|steady(?: state)?) (?=.)")
"""Words in front of what a run's steps took in the middle."""
_OF_STEP = re.compile("(?:train(?:ing)? )?(?:step|iter(?:ation)?)")


def meanings(header: Sequence[str], columns: Sequence[Sequence[str]]) -> dict[int, Meaning]:
    """What each column means, by its place; of two that mean one thing the surer.

    Args:
        header: names, as they are printed.
        columns: the cells below each of them.
    """
    found: dict[int, Meaning] = {}
    for place, (name, cells) in enumerate(zip(header, columns, strict=True)):
        plain = _SECTION.sub("", name.replace("%", " %"))
        filled = [cell for cell in cells if not is_empty(cell)]
        meaning = next((one for read in _READERS if (one := read(plain, filled))), None) if filled else None
        meaning = replace(meaning, name=name) if meaning else None
        rival = next((at for at, other in found.items() if meaning and other.column == meaning.column), None)
        if meaning is None or (rival is not None and found[rival].sure <= meaning.sure):
            continue
        if rival is not None:
            del found[rival]
        found[place] = meaning
    return found


def _parameters(name: str, _cells: Sequence[str]) -> Meaning | None:
    found = _PARAMETERS.fullmatch(words(name))  # its `b` is no byte
    return Meaning(name, "params", factor=_MANY[found[1]]) if found else None


def _batch(name: str, _cells: Sequence[str]) -> Meaning | None:
    return Meaning(name, "batch", sure=1) if _BATCH.fullmatch(words(name)) else None


def _layout(name: str, cells: Sequence[str]) -> Meaning | None:
    """A column of whole layouts (`DP8 TP2`), whatever it is called."""
    return Meaning(name, "layout", sure=1) if sum(len(composed(cell)) > 1 for cell in cells) * 2 > len(cells) else None


def _result(name: str, cells: Sequence[str]) -> Meaning | None:
    """A column of amounts, or of words for how a run ended in their place."""
    if not all(amount_of(cell) or ending(cell) for cell in cells):
        return None
    thousands = _THOUSANDS.search(name)
    factor = _MANY[thousands[1]] if thousands else 1.0
    label, unit = in_label(words(_THOUSANDS.sub("", name)))
    if unit and unit.quantity == "other rate":
        return Meaning(name, "samples_per_s", factor=factor)
    column = measured(label, unit)
    word = unit.word if unit and unit.word != "human" else ""
    return Meaning(name, OF_STEPS[column][0], word, factor) if column else None


def measured(label: str, unit: Unit | None) -> str | None:
    """The column of `steps` that a label and its unit name: `mean_step_s` is the time of a step."""
    label = _STATISTIC.sub("", label)
    if unit and unit.quantity == "time" and _OF_STEP.fullmatch(label):
        return "step_time"
    named = {column for column, sure in step_columns(label) if column in OF_STEPS and sure <= OF_STEPS[column][1]}
    if unit and unit.columns:
        named = named & {*unit.columns} or {unit.columns[0]}
    elif unit and unit.quantity in _OF_QUANTITY:
        named &= _OF_QUANTITY[unit.quantity]
    return next((column for column in OF_STEPS if column in named), None)


def _setting(name: str, cells: Sequence[str]) -> Meaning | None:
    setting = setting_of(words(name))
    is_so = setting and any(word_of(setting[0], name, cell) is not None for cell in cells)
    return Meaning(name, setting[0], sure=setting[1]) if setting and is_so else None


def _token(name: str, _cells: Sequence[str]) -> Meaning | None:
    """A short name as it stands in names of folders: `ga`, `sl`."""
    column = next(iter(read_folder_name(f"{words(name)}2")), None)
    return Meaning(name, column, sure=1) if column and ":" not in column else None


def _flag(name: str, cells: Sequence[str]) -> Meaning | None:
    flag = FLAGS.get(words(name))
    is_so = flag and any(word_of(flag[0], name, cell) is not None for cell in cells)
    return Meaning(name, flag[0], sure=2) if flag and is_so else None


def _named(name: str, cells: Sequence[str]) -> Meaning | None:
    plain = words(name)
    column = next((column for column, form in _NAMED.items() if form.fullmatch(plain)), None)
    if column == "accelerator" and all(word_of(column, name, cell) is None for cell in cells):
        return None
    return Meaning(name, column, sure=1) if column else None


_READERS: tuple[Callable[[str, Sequence[str]], Meaning | None], ...] = (
    *(_parameters, _batch, _layout, _result, _setting, _token, _flag, _named),
)
