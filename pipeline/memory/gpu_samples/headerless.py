"""Columns of nvidia-smi's rows without a header (`--format=csv,noheader`), inferred from their values.

A time, a UUID, a name and values with a unit are known by their format. Memory is one column, or two: of those one may
be constant on each GPU and at least as large, the total; or their sum is constant, and in use is the one that is larger
while the GPU works. Others are ambiguous (used, free and reserved look alike), and so are columns of plain numbers
other than memory, except for an index that cycles.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence

import polars as pl

_TIME = r"\d{4}[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?"
_SMI_TIME = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
_FORMS = (
    ("ts", re.compile(_TIME)),
    ("gpu_uuid", re.compile(r"(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]{20,60}")),
    ("memory", re.compile(r"\d+ MiB")),
    ("share", re.compile(r"\d{1,3} %")),
    ("power_w", re.compile(r"\d+\.\d+ W")),
    ("number", re.compile(r"\d{1,7}")),
    ("accelerator", re.compile(r"(?:NVIDIA|Tesla|Quadro|GeForce|[AHBLV]\d{2,3})\b[\w .-]*")),
)
_MISSING = re.compile(r"\[[\w /]+\]|")
_MIN_MEMORY_MIB = 256
_ROUNDING_MIB = 2
"""Used and free memory are each rounded."""
_MAX_CELLS = 30
_SEEN_ROWS = 5_000


def is_bare(line: str) -> bool:
    """Whether a line alone is a row of nvidia-smi: memory with its unit, and only values that nvidia-smi prints.

    >>> is_bare("2026/01/03 15:36:56.518, 0, 17304 MiB, 24564 MiB"), is_bare("step 1, 17304 MiB")
    (True, False)
    """
    cells = [cell.strip(' "') for cell in line.split(",")]
    if not 1 < len(cells) <= _MAX_CELLS:
        return False
    forms = [_form(cell) for cell in cells]
    if not {"ts", "gpu_uuid"} & set(forms):
        is_known = all(form or _MISSING.fullmatch(cell) for form, cell in zip(forms, cells, strict=True))
        return "memory" in forms and is_known
    # Without units only nvidia-smi's format of times, or a UUID, identifies its rows.
    is_smi = "gpu_uuid" in forms or any(_SMI_TIME.fullmatch(cell) for cell in cells)
    return "memory" in forms or (is_smi and "number" in forms)


def bare_columns(lines: Sequence[str]) -> list[str | None]:
    """Column of `gpu_samples` of each cell; None for an ambiguous one.

    Raises ValueError where the column of the memory in use is ambiguous.
    """
    seen = itertools.islice((line for line in lines if is_bare(line)), _SEEN_ROWS)
    rows = [[cell.strip(' "') for cell in line.split(",")] for line in seen]
    (width, _), *_ = Counter(map(len, rows)).most_common(1)
    names = [str(at) for at in range(width)]
    table = pl.DataFrame([row for row in rows if len(row) == width], schema=names, orient="row")
    forms = [_column_form(table[name].to_list()) for name in table.columns]
    device = next((table.columns[at] for at, form in enumerate(forms) if form == "gpu_uuid"), None)
    device = device or _index_column(table, forms)
    memory = [name for name, form in zip(table.columns, forms, strict=True) if form == "memory"] or [
        name for name, form in zip(table.columns, forms, strict=True) if form == "number" and _is_memory(table[name])
    ]
    shares = [name for name, form in zip(table.columns, forms, strict=True) if form == "share"]
    known = _memory_columns(table, memory, device, shares[:1])
    if shares:  # nvidia-smi prints the GPU's utilisation before the memory's
        known[shares[0]] = "gpu_utilisation"
    if len(shares) == 2:
        known[shares[1]] = "mem_utilisation"
    index = _index_column(table, forms)
    plain = {"ts", "gpu_uuid", "power_w", "accelerator"}
    return [
        known.get(name) or ("gpu_index" if name == index else form if form in plain else None)
        for name, form in zip(table.columns, forms, strict=True)
    ]


def _form(cell: str) -> str | None:
    return next((name for name, form in _FORMS if form.fullmatch(cell)), None)


def _column_form(cells: Sequence[str]) -> str | None:
    known = {_form(cell) for cell in cells if not _MISSING.fullmatch(cell)}
    return known.pop() if len(known) == 1 else None


def _is_memory(column: pl.Series) -> bool:
    return bool((column.cast(pl.Int64, strict=False) >= _MIN_MEMORY_MIB).any())


def _index_column(table: pl.DataFrame, forms: Sequence[str | None]) -> str | None:
    """The first column of numbers that cycle from 0 without a gap."""
    for name, form in zip(table.columns, forms, strict=True):
        if form == "number":
            values = table[name].cast(pl.Int64, strict=False).to_list()
            count = len(set(values))
            if values[:count] == list(range(count)) and all(v == at % count for at, v in enumerate(values)):
                return name
    return None


def _memory_columns(
    table: pl.DataFrame, names: Sequence[str], device: str | None, shares: Sequence[str]
) -> dict[str, str | None]:
    """Memory columns by name: which is the total, in use or free.

    Args:
        table: texts of the cells.
        names: of the columns with memory.
        device: the column that names the GPU.
        shares: the column of the utilisation, if there is one.
    """
    if len(names) == 1:
        return {names[0]: "mem_used_bytes"}
    sizes = table.with_columns(pl.col(name).str.extract(r"(\d+)").cast(pl.Int64) for name in names)
    per_gpu = sizes.group_by(device or pl.lit(0)).agg(
        *(pl.col(name).drop_nulls().n_unique().alias(f"{name} values") for name in names),
        *(pl.col(name).max() for name in names),
    )
    constant = [name for name in names if (per_gpu[f"{name} values"] == 1).all()]
    if len(names) == len({"used", "total"}) and len(constant) == 1:  # two constant ones may be used and free
        total, (other,) = constant[0], [name for name in names if name not in constant]
        if (per_gpu[total] >= per_gpu[other]).all():
            return {total: "mem_total_bytes", other: "mem_used_bytes"}
    if len(names) == len({"used", "free"}) and not constant and shares:
        used = _used_of(sizes, names, device, shares[0])
        if used:
            return {name: "mem_used_bytes" if name == used else "mem_free_bytes" for name in names}
    raise ValueError("no header, and the column of the memory in use is ambiguous; record with a header")


def _used_of(sizes: pl.DataFrame, names: Sequence[str], device: str | None, share: str) -> str | None:
    """Of two columns with a constant sum, the one that is larger while a GPU works than while it is idle."""
    both = pl.sum_horizontal(names)
    spread = sizes.drop_nulls(names).group_by(device or pl.lit(0)).agg(spread=both.max() - both.min())
    if (spread["spread"] > _ROUNDING_MIB).any():
        return None
    is_busy = pl.col(share).str.extract(r"(\d+)").cast(pl.Int64) > 0
    means = sizes.group_by(is_busy.alias("is_busy")).agg(pl.col(names).mean()).sort("is_busy").drop_nulls("is_busy")
    if means.height != len({"idle", "busy"}):
        return None
    return next((name for name in names if means[name][1] > means[name][0]), None)
