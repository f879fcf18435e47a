"""An Extract as named frames and back, so that the facts of a growing log can be stored."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from sweepscope.pipeline.io.spill import is_large, stretches
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine import extract as engine
from sweepscope.pipeline.logs.engine.extract import Extract
from sweepscope.pipeline.logs.facts import Facts

_FACTS = tuple(field.name for field in dataclasses.fields(Facts))


def flatten(extract: Extract) -> dict[str, pl.DataFrame]:
    """Every frame of an extract that has rows: `evidence`, `stamps` ..., and `readings/<dialect>/<kind of facts>`."""
    frames = {
        f"readings/{dialect}/{kind}": getattr(facts, kind)
        for dialect, facts in extract.readings.items()
        for kind in _FACTS
    }
    for field in dataclasses.fields(extract):
        value = getattr(extract, field.name)
        if isinstance(value, pl.DataFrame):
            frames[field.name] = value
    return {name: frame for name, frame in frames.items() if not frame.is_empty()}


def unflatten(frames: Mapping[str, pl.DataFrame], dialects: Sequence[Dialect]) -> Extract:
    """The extract that `flatten` took apart. `dialects` has to be the set that read it; see `identity`."""
    empty, no_facts = engine.merge([], dialects), Facts.empty()
    named: dict[str, Any] = {
        field.name: frames.get(field.name, value)
        for field in dataclasses.fields(empty)
        if isinstance(value := getattr(empty, field.name), pl.DataFrame)
    }
    readings = {
        name: Facts(*(frames.get(f"readings/{name}/{kind}", getattr(no_facts, kind)) for kind in _FACTS))
        for name in dict.fromkeys(name.split("/")[1] for name in frames if name.startswith("readings/"))
    }
    return dataclasses.replace(empty, readings=readings, **named)


def split(extract: Extract, sources: Collection[int]) -> dict[int, dict[str, pl.DataFrame]]:
    """The frames of each of some sources, as `flatten` names them; one pass over each frame."""
    parts: dict[int, dict[str, pl.DataFrame]] = {source: {} for source in sources}
    for name, frame in flatten(extract).items():
        for source, part in _of_each(frame, sources):
            parts[source][name] = part
    return parts


def _of_each(frame: pl.DataFrame, sources: Collection[int]) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows of each of some sources; of a large frame, in which those of a file are mostly neighbours, no copy."""
    if not is_large(frame):
        mine = frame.filter(pl.col("source").is_in(list(sources)))
        for (source,), part in mine.partition_by("source", as_dict=True, maintain_order=True).items():
            yield int(source), part
        return
    of_sources: dict[int, list[pl.DataFrame]] = {}
    begin = 0
    for length, source in stretches(frame["source"]).iter_rows():
        if source in sources:
            of_sources.setdefault(source, []).append(frame[begin : begin + length])
        begin += length
    for source, found in of_sources.items():
        yield source, pl.concat(found)


def numbered(frame: pl.DataFrame, source: int) -> pl.DataFrame:
    """`frame` as if it came from the file of that number in its batch."""
    return frame.with_columns(source=pl.lit(source, pl.Int64))


def identity(versions: Mapping[str, int], further: Mapping[str, pl.Schema]) -> str:
    """A digest that changes when the same lines could give other facts.

    Args:
        versions: of the parsers, by name, in the order in which they are tried.
        further: schemas of what is kept beside the facts, by name.
    """
    empty = unflatten({}, ())
    parts = [*vars(empty).values(), *vars(Facts.empty()).values()]
    schemas = [part.schema for part in parts if isinstance(part, pl.DataFrame)]
    return hashlib.sha256(repr((versions, schemas, dict(further))).encode()).hexdigest()
