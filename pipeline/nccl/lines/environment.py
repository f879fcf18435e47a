"""INFO lines about the library itself: its version, and the variables of the environment that it has read."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.facts import Notes
from sweepscope.pipeline.nccl.lines.info_lines import InfoLines
from sweepscope.pipeline.text.secrets import shorten

SETTING = " set by environment to "
VERSION = "CCL version"
_ENV = re.compile(r"([NR]CCL_\w+) set by environment to (.*?)\.?\Z")
_VALUE_CHARS = 200
# 2.20.5+cuda12.4, 2.12.6azure3+cuda11.4, RCCL's 2.22.3-HEAD:271856d; ranks glue their banners to one another.
_VERSION = re.compile(r"([NR]CCL) version ?:? ?(\d+\.\d+(?:\.\d+)?(?:(?![NR]CCL )[\w.+:-])*)")


def versions_in(text: str) -> list[tuple[str, str]]:
    """Library (NCCL or RCCL) and version of each banner in a text.

    >>> versions_in("NCCL version 2.20.5+cuda12.4NCCL version 2.20.5+cuda12.4.")
    [('NCCL', '2.20.5+cuda12.4'), ('NCCL', '2.20.5+cuda12.4')]
    """
    return [(found[1], found[2].rstrip(".:-")) for found in _VERSION.finditer(text)]


def read_versions(lines: InfoLines, notes: Notes) -> np.ndarray:
    """`version` facts; returns a mask of the texts that were understood."""
    found = [(number, *found[0]) for number, text in enumerate(lines.texts) if (found := versions_in(text))]
    schema = {"text_id": pl.UInt32, "flavour": pl.String, "version": pl.String}
    versions = pl.DataFrame(found, schema=schema, orient="row")
    notes.add_frame(
        "version", lines.with_prefix(lines.rows.join(versions, on="text_id", maintain_order="left"), "source")
    )
    return np.isin(np.arange(len(lines.texts)), versions["text_id"].to_numpy())


def read_settings(lines: InfoLines, notes: Notes) -> np.ndarray:
    """`env` facts; returns a mask of the texts that were understood."""
    is_read = np.zeros(len(lines.texts), dtype=bool)
    for source, text_id, line_no, count in lines.counted().iter_rows():
        if found := _ENV.match(lines.texts[text_id]):
            notes.at(source).count("env", line_no, found[1], shorten(found[2], _VALUE_CHARS), lines=count)
            is_read[text_id] = True
    return is_read
