"""The Explorer's controls: the question in selectors, the layout's knobs as sliders, both kept in the address.

The address is the one place that keeps a choice. A knob that was never turned is not in it and follows the fastest
layout, so that a short link still means "the fastest, but with TP 8".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import streamlit as st

from sweepscope.dashboard.selection import url_state
from sweepscope.dashboard.text.explorer_layout import KNOB
from sweepscope.dashboard.view_models.explorer import read_shape
from sweepscope.dashboard.widgets import choices
from sweepscope.pipeline.estimate.physics.layouts import RECOMPUTE_MODES, SCHEDULES
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.whatif import Choice, options
from sweepscope.pipeline.reference.layout_text import SCHEDULE_NAMES
from sweepscope.pipeline.reference.model_shape import ModelShape

NO_FRAMEWORK = "none"
KNOBS = tuple(entry.name for entry in fields(Choice))
_WORDS = {"recompute": RECOMPUTE_MODES, "pipeline_schedule": tuple(word for word in SCHEDULES if word != "interleaved")}
"""Knobs that are turned to a word. Interleaving is 1F1B with chunks."""


def wanted_knobs() -> dict[str, Any]:
    """Knobs that the address names, in a form that the estimator knows; anything else counts as not named."""
    found: dict[str, Any] = {}
    for name in KNOBS:
        text = st.query_params.get(name)
        if text is None:
            continue
        if name in _WORDS and text in _WORDS[name]:
            found[name] = text
        elif name not in _WORDS and text.isdecimal() and len(text) < 9 and int(text) >= (name != "zero_stage"):
            found[name] = int(text)
    return found


def put_choice(choice: Choice, best: Choice) -> None:
    """Writes to the address what `choice` has otherwise than the fastest layout."""
    for name in KNOBS:
        value = getattr(choice, name)
        url_state.put(name, [] if value == getattr(best, name) else [str(value)])


def draw_knobs(request: Request, chosen: Choice, best: Choice) -> None:
    """A slider per knob that has more than one value, at its `chosen` one; `best` is the layout knobs start from."""
    offered: dict[str, Sequence[Any]] = dict(options(request, chosen))
    modes = [mode for mode in request.recompute if not (mode == "selective" and request.asked.profile.is_flash)]
    offered["recompute"] = modes
    for name in KNOBS:
        values, value = offered[name], getattr(chosen, name)
        if len(values) < 2:
            continue
        key = f"knob_{name}"
        # Set only where it differs: a value that is set again while a slider is dragged would pull it back.
        if st.session_state.get(key) != value:
            st.session_state[key] = value
        st.select_slider(
            KNOB[name],
            values if value in values else [*values, value],
            key=key,
            on_change=_turned,
            args=(name, getattr(best, name)),
            format_func=lambda value: SCHEDULE_NAMES.get(value, str(value)),
        )


def _turned(name: str, of_best: Any) -> None:
    value = st.session_state[f"knob_{name}"]
    url_state.put(name, [] if value == of_best else [str(value)])


def number_choice(
    label: str,
    name: str,
    values: Sequence[int],
    default: int,
    *,
    allowed: Callable[[int], bool],
    format_func: Callable[[int], str],
    width: int,
) -> int:
    """A selector of numbers bound to the parameter `name`; the address may name an `allowed` one that is not listed."""
    text = st.query_params.get(name, "")
    given = int(text) if text.isdecimal() and len(text) < 12 else 0
    offered = sorted({*values, default, *([given] if given and allowed(given) else [])})
    chosen = choices.select(
        label,
        name,
        [str(value) for value in offered],
        str(default),
        shown=lambda value: format_func(int(value)),
        width=width,
    )
    return int(chosen)


_SHAPE = (
    ("num_layers", "Layers", 32),
    ("hidden_size", "Width", 4096),
    ("num_heads", "Heads", 32),
    ("num_kv_heads", "Key-value heads", 8),
    ("ffn_hidden_size", "Feed-forward width", 14_336),
    ("vocab_size", "Vocabulary", 128_256),
    ("num_experts", "Experts (0: dense)", 0),
    ("experts_per_token", "Experts per token", 2),
    ("expert_ffn_hidden_size", "Width of an expert", 14_336),
)
_MAY_BE_ZERO = ("num_experts",)


def custom_shape() -> ModelShape | str:
    """Inputs of a shape of one's own, Llama 3 8B at first; a sentence when the numbers are no transformer."""
    values: dict[str, int] = {}
    columns = st.columns(3)
    for index, (name, label, default) in enumerate(_SHAPE):
        least = 0 if name in _MAY_BE_ZERO else 1
        with columns[index % 3]:
            given = st.number_input(label, least, 10_000_000, default, key=name, bind="query-params")
        values[name] = int(given)
    gated = st.checkbox("Gated feed-forward (SwiGLU)", value=True, key="gated_mlp", bind="query-params")
    tied = st.checkbox("Tied embeddings", value=False, key="tie_word_embeddings", bind="query-params")
    return read_shape(values, gated=gated, tied=tied)
