"""Properties of one record of a collective: whether it waits, and the values in which ranks must agree."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sweepscope.pipeline.nccl.flight_recorder.groups import Record

# Where ranks may differ by design (torch/distributed/flight_recorder/components/types.py has the same exceptions).
_UNEVEN_INPUT = ("alltoall", "all_to_all", "scatter")
_UNEVEN_OUTPUT = ("alltoall", "all_to_all", "gather")
_NEEDS_ALL = ("all_reduce", "allreduce", "all_gather", "allgather", "reduce_scatter", "barrier")
"""No rank ends these before every rank has entered them."""
_UNEVEN_TYPES = ("scatter", "gather", "broadcast")


def is_gloo(row: Record) -> bool:
    """Whether Gloo ran it, whose records never show a start or an end."""
    return str(row["profiling_name"]).startswith("gloo:")


def waits(row: Record) -> bool:
    """Whether the collective has not ended on this rank, as far as its record shows.

    NCCL's records end completed; one that is retired without that has timed out. Gloo's never leave `scheduled`.
    """
    if is_gloo(row):
        return not row["is_retired"]
    return bool(row["op_state"] != "completed")


def failed(row: Record) -> bool:
    """Whether a collective that not all ranks joined cannot have succeeded, although its record is closed.

    Gloo retires a record when its timeout is caught, too. A broadcast's root, or a reduction's leaf, may well be done.
    """
    return is_gloo(row) and op_of(row).startswith(_NEEDS_ALL)


def op_of(row: Record) -> str:
    """The operation, in which all ranks must agree."""
    return str(row["op"])


def shape(row: Record) -> str:
    """The sizes, as far as ranks must agree in them."""
    op = op_of(row)
    into = "any" if any(name in op for name in _UNEVEN_INPUT) and "reduce" not in op else row["input_sizes"]
    uneven_output = any(name in op for name in _UNEVEN_OUTPUT) and "all_gather" not in op and "allgather" not in op
    return f"{into} -> {'any' if uneven_output else row['output_sizes']}"


def types(row: Record) -> str:
    """The types, as far as ranks must agree in them."""
    op = op_of(row)
    is_uneven = op.startswith(_UNEVEN_TYPES) or not row["input_dtypes"]
    return "any" if is_uneven else f"{row['input_dtypes']} -> {row['output_dtypes']}"


def sees_starts(calls: Mapping[int, Record]) -> bool:
    """Whether a rank's records have the starts of collectives: with TORCH_NCCL_ENABLE_TIMING only."""
    return any(row["found_started_ns"] is not None or row["op_state"] == "started" for row in calls.values())


def numel(sizes: str | None) -> int | None:
    """Elements over all shapes."""
    if sizes is None:
        return None
    total = 0
    for shape in json.loads(sizes):
        product = 1
        for size in shape:
            if size is None or product > 1 << 50:
                return None
            product *= size
        total += product
    return total
