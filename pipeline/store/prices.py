"""Prices of accelerators in a home: rows of the table `prices`, stated by the user."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

import polars as pl

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.reference.accelerators import canonical_accelerator
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from sweepscope.schemas.tables.costs import PRICES

MOST = 10_000.0
"""Dollars per hour of one accelerator beyond which a price is a slip."""


def checked_price(text: str) -> float:
    """A price in dollars per accelerator-hour. Raises UsageError for what is none.

    >>> checked_price("2.50"), checked_price("$3")
    (2.5, 3.0)
    """
    try:
        price = float(text.strip().removeprefix("$"))
    except ValueError as error:
        raise UsageError(f"{text}: a price is a number of dollars per accelerator-hour, such as 2.50.") from error
    if not math.isfinite(price) or not 0 < price <= MOST:
        raise UsageError(f"{text}: a price lies above 0 and is at most {MOST:,.0f} dollars per accelerator-hour.")
    return price


def named(home: Home, text: str) -> str:
    """The accelerator that a text names, as runs have it. Raises UsageError for one that neither data nor runs know."""
    name = canonical_accelerator(text) or text.strip()
    runs = Lake(home).read("runs", ["accelerator"])["accelerator"].drop_nulls().unique()
    known = set(Lake(home).read("accelerators", ["accelerator"])["accelerator"]) | set(runs)
    if name not in known:
        raise UsageError(
            f"{text}: no accelerator of this store. `sweepscope query 'SELECT accelerator FROM accelerators'` lists "
            "the names."
        )
    return name


def stored(home: Home) -> dict[str, float]:
    """Price by accelerator. Raises StoreError when the lake is damaged."""
    found = Lake(home).read("prices", ["accelerator", "usd_per_gpu_hour"]).sort("accelerator")
    return dict(found.iter_rows())


def set_prices(home: Home, prices: Mapping[str, float], *, author: str | None = None) -> None:
    """Keep prices by accelerator, in place of earlier ones, and publish. Raises StoreError."""
    known = stored(home)
    rows = [
        {
            "accelerator": name,
            "usd_per_gpu_hour": price,
            "author": author,
            "set_at": datetime.now(UTC).replace(tzinfo=None),
        }
        for name, price in prices.items()
        if known.get(name) != price
    ]
    if rows:
        Lake(home).commit({"prices": PRICES.conform(pl.DataFrame(rows, infer_schema_length=None))})
        publish(home)


def remove(home: Home, accelerator: str) -> bool:
    """Forget a price and publish; whether there was one. Raises StoreError."""
    if accelerator not in stored(home):
        return False
    Lake(home).commit({}, forget=[accelerator])
    publish(home)
    return True
