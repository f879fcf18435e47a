"""Prices of accelerators in a home, for a page: kept and removed as the command line does it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sweepscope.pipeline.store import prices
from sweepscope.pipeline.store.home import Home


def keep(home: Path, wanted: Mapping[str, float | None]) -> int:
    """Keep dollars per accelerator-hour (None or 0: forget the price). Returns how many changed.

    Raises:
        UsageError: a price is none.
        StoreError: the home cannot be written to.
    """
    at = Home.resolve(str(home))
    known = prices.stored(at)
    priced = {name: prices.checked_price(str(price)) for name, price in wanted.items() if price}
    changed = {name: price for name, price in priced.items() if known.get(name) != price}
    gone = [name for name, price in wanted.items() if not price and name in known]
    prices.set_prices(at, changed)
    for name in gone:
        prices.remove(at, name)
    return len(changed) + len(gone)
