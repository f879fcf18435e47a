"""Names of files that readers take away, which tell what is in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_LONGEST = 150  # letters; file systems take 255 bytes, folders in front of them not counted


def picture_name(page: str, chart: str, query: Mapping[str, Sequence[str]]) -> str:
    """Name of a picture of a chart, without its ending: page, chart, and the filters and choices of the address.

    >>> picture_name("Best configurations", "heat", {"model": ["Llama 8.86B"], "nodes": ["16"]})
    'sweepscope-best-configurations-heat-model-Llama-8.86B-nodes-16'
    >>> picture_name("Run", "../x", {"run": []})
    'sweepscope-run-x'
    """
    chosen = [part for name, values in query.items() if values for part in (name, *values)]
    parts = ["sweepscope", page.lower(), chart, *chosen]
    plain = (re.sub(r"[^A-Za-z0-9.]+", "-", part).strip("-.") for part in parts)
    return "-".join(filter(None, plain))[:_LONGEST].rstrip("-.")
