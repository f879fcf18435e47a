"""Sections of a configuration over many lines: what stands in one of another part is no setting of the training."""

from __future__ import annotations

import re

import polars as pl

from sweepscope.pipeline.logs.synonyms import NOT_OURS, words

_BEGIN = r"^\s*[\"']?[A-Za-z][\w./-]*[\"']?\s*[:=]\s*[{(]?\s*$"
_NAME = re.compile(r"(?P<indent>\s*)[\"']?(?P<name>[A-Za-z][\w./-]*)")


def outside_sections(lines: pl.DataFrame) -> pl.DataFrame:
    """The lines (`line_no`, `text`, in order) but for those of a section that is not the training's.

    As of transformers' `"task_specific_params": {`, or a YAML file's `eval:`: the lines below it that are indented
    further, up to the first that is not.
    """
    begins = lines["text"].str.contains(_BEGIN)
    if not begins.any():
        return lines
    kept, indent = [], -1
    for text, is_begin in zip(lines["text"], begins, strict=True):
        own = len(text) - len(text.lstrip()) if text.strip() else None
        if indent >= 0 and own is not None and own <= indent:
            indent = -1
        kept.append(indent < 0)
        hit = _NAME.match(text) if is_begin and indent < 0 else None
        if hit and NOT_OURS.search(words(hit["name"])):
            indent = len(hit["indent"])
    return lines.filter(pl.Series(kept))
