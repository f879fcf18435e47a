"""Words of what people write down about runs."""

from __future__ import annotations

NOTE_KIND: dict[str, str] = {
    "note": "a remark",
    "tag": "a word that runs are found by",
    "view": "a page with its filters, under a name",
}

NOTE_ABOUT: dict[str, str] = {
    "run": "one run attempt",
    "cell": "a model, on a number of nodes and further values where it names them",
    "day": "all runs that began on a day",
}
