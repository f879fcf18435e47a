"""Accelerators: one name for each, its peaks and links, and published bandwidths; from `data/hardware`, `data/network`.

A new card, or a new spelling of one, is a line or an alias there. An unknown name stays as it was found: nothing here
guesses from a part of a name, because "H100" is three cards with three peaks.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import polars as pl

from sweepscope import data
from sweepscope.schemas.tables.bandwidths import ACCELERATOR_LINKS, PUBLISHED_BANDWIDTHS
from sweepscope.schemas.tables.published import ACCELERATORS

SIXTEEN_BIT = ("bf16", "fp16")
EIGHT_BIT = ("fp8", "mxfp8", "int8")

_GB_PER_S, _GBIT_PER_S = 1e9, 1e9 / 8
_MEMORY_FIRST = re.compile(r"(\d{2,3} ?gb)[\W_]+((?:sxm|pcie|nvl)\d?)(?![a-z0-9])")
_NOISE = frozenset({"nvidia", "amd", "instinct", "tesla", "google", "cloud", "habana", "intel", "r", "gpu"})


def _key(text: str) -> str:
    """Spelling-independent form of a name: lower case, without makers, spaces and punctuation, its memory last.

    >>> _key("NVIDIA H100-SXM5-80GB"), _key("H100 80GB SXM5")
    ('h100sxm580gb', 'h100sxm580gb')
    """
    words = re.findall(r"[a-z0-9]+", _MEMORY_FIRST.sub(r"\2 \1", text.casefold()))
    return "".join(word for word in words if word not in _NOISE)


def load_accelerators(path: Path = data.HARDWARE / "accelerators.csv") -> pl.DataFrame:
    """The `accelerators` table. Units as in its schema: TFLOP/s dense, bytes."""
    return ACCELERATORS.conform(pl.read_csv(path, schema_overrides={"memory_bytes": pl.Int64}))


def load_published_bandwidths(path: Path = data.NETWORK / "published_bandwidths.csv") -> pl.DataFrame:
    """The `published_bandwidths` table; the line is that of the CSV."""
    rows = pl.read_csv(path).with_row_index("line_no", offset=2)
    return PUBLISHED_BANDWIDTHS.conform(rows.with_columns(source_path=pl.lit(f"data/network/{path.name}")))


def load_accelerator_links(path: Path = data.HARDWARE / "links.csv") -> pl.DataFrame:
    """The `accelerator_links` table in bytes/s, per accelerator and one direction."""
    return ACCELERATOR_LINKS.conform(
        pl.read_csv(path).with_columns(
            memory_bytes_per_s=pl.col("memory_gb_per_s") * _GB_PER_S,
            link_bytes_per_s=pl.col("link_gb_per_s") * _GB_PER_S,
            network_bytes_per_s=pl.col("network_gbit_per_s") * _GBIT_PER_S,
        )
    )


@cache
def _accelerators() -> pl.DataFrame:
    return load_accelerators()


@cache
def instances() -> dict[str, str]:
    """Accelerator by the instance type of a cloud provider, such as `p4d.24xlarge`, from `data/hardware`."""
    return dict(pl.read_csv(data.HARDWARE / "instances.csv").select("instance", "accelerator").iter_rows())


@cache
def _names_by_key() -> dict[str, str]:
    return {_key(instance): name for instance, name in instances().items()} | {
        _key(spelling): name
        for name, aliases in _accelerators().select("accelerator", "aliases").iter_rows()
        for spelling in (name, *(aliases or "").split("|"))
        if spelling
    }


def canonical_accelerator(text: str) -> str | None:
    """Name of an accelerator in the `accelerators` table, or None for one that is not there.

    >>> canonical_accelerator("NVIDIA H100 80GB HBM3"), canonical_accelerator("ml.p4d.24xlarge")
    ('H100-SXM-80GB', 'A100-SXM-40GB')
    """
    return _names_by_key().get(_key(text.removeprefix("ml.")))  # SageMaker's prefix


def canonical_accelerators(column: pl.Series) -> pl.Series:
    """`column` with every known spelling replaced by its canonical name; unknown ones stay as found."""
    found = {text: name for text in column.drop_nulls().unique() if (name := canonical_accelerator(text))}
    return column.replace(found) if found else column


def _lookup(column: str) -> pl.Expr:
    peaks = dict(_accelerators().select("accelerator", column).iter_rows())
    return pl.col("accelerator").replace_strict(peaks, default=None, return_dtype=pl.Float64)


def peak_tflops() -> pl.Expr:
    """Dense peak in TFLOP/s for `accelerator` at `precision`.

    An unstated (NULL) precision takes the 16-bit peak, which `mfu_basis` then names. NULL for a card or a precision
    without a known peak: FP32 runs on CUDA cores or as TF32 depending on a switch that logs do not show.
    """
    precision = pl.col("precision")
    return (
        pl.when(precision.is_null() | precision.is_in(SIXTEEN_BIT))
        .then(_lookup("peak_bf16_tflops"))
        .when(precision.is_in(EIGHT_BIT))
        .then(_lookup("peak_fp8_tflops"))
        .when(precision == "fp4")
        .then(_lookup("peak_fp4_tflops"))
    )


def has_eight_bit_peak() -> pl.Expr:
    """Whether `accelerator` multiplies matrices in 8 bits."""
    return _lookup("peak_fp8_tflops").is_not_null()


def highest_peak_tflops() -> pl.Expr:
    """The largest dense peak known for `accelerator`, in TFLOP/s, at any precision: more than this cannot be."""
    return pl.max_horizontal(*(_lookup(f"peak_{precision}_tflops") for precision in ("bf16", "fp8", "fp4")))


def is_known() -> pl.Expr:
    """Whether `accelerator` is in the table."""
    return pl.col("accelerator").is_in(_accelerators()["accelerator"].to_list())
