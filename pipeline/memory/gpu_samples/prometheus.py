"""GPU samples that were asked of Prometheus for a range of time: the fields of dcgm-exporter, as JSON or CSV.

JSON: the answer of `/api/v1/query_range` (prometheus.io, HTTP API: `data.result` with `metric` and `values` of seconds
and texts), `promtool query range -o json` (the same list alone), and the lines of VictoriaMetrics' `/api/v1/export`
(`metric`, `values` and `timestamps` in milliseconds), in one or many documents. CSV: what Grafana saves of a panel of
such series, joined by time: `"Time","DCGM_FI_DEV_FB_USED{gpu=""0"", ...}"`. Times are UTC.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sweepscope.pipeline.memory.gpu_samples.monitors import EXPORTER_COLUMNS, EXPORTER_LABEL
from sweepscope.pipeline.memory.gpu_samples.units import BYTES, MIB, RAW_LIMIT, SHARES, Rejects

_JSON = re.compile(r'^\s*[\[{].*"__name__"\s*:\s*"DCGM_FI_DEV_', re.DOTALL)
_CSV = re.compile(r'^\ufeff?(?:sep=,\r?\n)?"?Time"?,.*DCGM_FI_DEV_\w+\{')
_SERIES = re.compile(r"(DCGM_FI_DEV_\w+)\{(.*)\}")
_KEYS = ("host", "gpu_uuid", "gpu_index", "accelerator", "ts")
_SERIES_SCHEMA = pl.Schema({**dict.fromkeys(_KEYS[:2], pl.String), "gpu_index": pl.Int64, "accelerator": pl.String})


def is_range(head: str) -> bool:
    """Whether a text begins with series of dcgm-exporter."""
    return _JSON.match(head) is not None or _CSV.match(head) is not None


def read_range(text: str) -> tuple[pl.DataFrame, Rejects]:
    """Rows of `gpu_samples`, one per GPU and time, numbered in this order; and documents that are cut off.

    Fields of one GPU at one time are a row, whichever series they are of. Instances of a divided GPU (MIG) are left
    out: their memory is part of the GPU's. Raises ValueError where no sample is found.
    """
    rejects: Rejects = []
    series = _of_csv(text) if _CSV.match(text) else _of_json(text, rejects)
    frames = [frame for labels, name, values in series if (frame := _frame(labels, name, values)) is not None]
    if not frames:
        raise ValueError(rejects[0][1] if rejects else "no sample of a GPU among the series")
    rows = pl.concat(frames, how="diagonal")
    columns = [name for name in rows.columns if name not in _KEYS]
    samples = rows.group_by(_KEYS, maintain_order=True).agg(pl.col(columns).drop_nulls().first())
    ordered = samples.sort("ts", "host", "gpu_index", "gpu_uuid", maintain_order=True)
    return ordered.with_columns(line_no=pl.int_range(1, pl.len() + 1, dtype=pl.Int64)), rejects


_Series = tuple[Mapping[str, str], str, pl.DataFrame]


def _of_json(text: str, rejects: Rejects) -> Iterator[_Series]:
    decoder, at, whitespace = json.JSONDecoder(), 0, re.compile(r"\s*")
    while (at := _end(whitespace, text, at)) < len(text):
        try:
            document, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            line_no = text.count("\n", 0, at) + 1
            rejects.append((line_no, "JSON that is cut off or damaged", text[at : at + RAW_LIMIT].split("\n", 1)[0]))
            return
        yield from _of_document(document)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _of_document(document: Any) -> Iterator[_Series]:
    data = document.get("data") if isinstance(document, dict) else None
    listed = data.get("result") if isinstance(data, dict) else document if isinstance(document, list) else [document]
    for one in listed if isinstance(listed, list) else []:
        metric, values = (one.get("metric"), one.get("values")) if isinstance(one, dict) else (None, None)
        if not isinstance(metric, dict) or not isinstance(values, list):
            continue
        if isinstance(moments := one.get("timestamps"), list):
            pairs = [
                (moment / 1e3, value) for moment, value in zip(moments, values, strict=False) if _is_number(moment)
            ]
        else:
            pairs = [(pair[0], pair[1]) for pair in values if isinstance(pair, list) and len(pair) == 2]
        labels = {str(name).lower(): str(value) for name, value in metric.items()}
        seconds = [float(moment) if _is_number(moment) else None for moment, _ in pairs]
        yield (
            labels,
            labels.pop("__name__", ""),
            pl.DataFrame({"seconds": seconds, "value": [str(value) for _, value in pairs]}).with_columns(
                ts=pl.from_epoch((pl.col("seconds") * 1e6).round().cast(pl.Int64), "us")
            ),
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _of_csv(text: str) -> Iterator[_Series]:
    body = text.removeprefix("\ufeff")
    body = body.split("\n", 1)[1] if body.startswith("sep=") else body
    header, *rows = csv.reader(io.StringIO(body))
    whole = [row for row in rows if len(row) == len(header)]
    moments = pl.Series([row[0] for row in whole], dtype=pl.String)
    milliseconds = moments.cast(pl.Int64, strict=False)
    ts = pl.from_epoch(milliseconds, "ms").cast(pl.Datetime("us")) if milliseconds.count() else _printed(moments)
    for at, name in enumerate(header):
        if found := _SERIES.search(name):
            labels = {label.lower(): value for label, value in EXPORTER_LABEL.findall(found[2])}
            values = pl.Series([row[at] for row in whole], dtype=pl.String)
            yield labels, found[1], pl.DataFrame({"ts": ts, "value": values})


def _printed(moments: pl.Series) -> pl.Series:
    """`2026-01-01 12:00:00`, with fractions or without."""
    return (
        moments.str.replace("T", " ")
        .str.strip_suffix("Z")
        .str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)
    )


def _frame(labels: Mapping[str, str], name: str, values: pl.DataFrame) -> pl.DataFrame | None:
    """Samples of one series; None for a field that is no column, and for an instance of a GPU."""
    column = EXPORTER_COLUMNS.get(name)
    if column is None or labels.get("gpu_i_id"):
        return None
    index = labels.get("gpu", "")
    about = {
        "host": labels.get("hostname") or labels.get("node") or labels.get("instance"),
        "gpu_uuid": labels.get("uuid"),
        "gpu_index": int(index) if index.isdecimal() else None,
        "accelerator": labels.get("modelname"),
    }
    value = pl.col("value").cast(pl.Float64, strict=False)
    value = pl.when(value.is_finite()).then(value)
    if column in BYTES:
        value = (value * MIB).round().cast(pl.Int64)
    elif column in SHARES:
        value = (value / 100).round(9)  # polars multiplies by 0.01
    samples = values.select("ts", value.alias(column)).drop_nulls()
    return samples.select(*(pl.lit(about[key], kind).alias(key) for key, kind in _SERIES_SCHEMA.items()), "ts", column)
