"""Which columns a label names: by all of its words, or by those next to the value."""

from __future__ import annotations

import re

from sweepscope.pipeline.logs.synonyms import NAMESPACE, step_columns

NAMELESS_LOSS = "@loss"
"""The label of losses that are printed without a name (`nameless_losses`)."""

_BY_PART = 2
_PART_OF_LOSS = re.compile(
    r"aux|auxiliary|balance|balancing|router|z|kl|kd|reg|best|min|lowest|act|cri|unsuper|mtp|distill|distillation|gen|disc|"
    r"policy|value|"
    r"critic|actor|entropy|delta|lb|load|moe|final|gate|gating|commit(?:ment)?|align(?:ment)?|contrastive|sparsity|consistency"
)
"""Words in front of "loss" that make it another quantity than the loss of the training."""


def columns_of(label: str) -> tuple[tuple[str, int], ...]:
    """The columns that a label may name: by all of its words, else by those next to the value, which is less sure."""
    if label == NAMELESS_LOSS:
        return (("loss", _BY_PART),)
    plain = label.removeprefix("> ")
    if whole := step_columns(plain):
        return whole
    parts = plain.split()
    if len(parts) > 1 and NAMESPACE.fullmatch(parts[0]) and (found := step_columns(" ".join(parts[1:]))):
        return tuple((column, sure + 1) for column, sure in found)
    for count in (3, 2, 1):
        near = parts[:count] if label != plain else parts[-count:]
        if count < len(parts) and (found := step_columns(" ".join(near))):
            other = [] if label != plain else parts[: len(parts) - count]
            allowed = (
                ("step", "epoch") if any(_PART_OF_LOSS.fullmatch(word) for word in other) else ("step", "epoch", "loss")
            )
            return tuple((column, sure + _BY_PART) for column, sure in found if column in allowed)
    return ()


def named(label: str, column: str) -> int | None:
    """How sure a label names a column, from 0 for the surest on; None where it does not."""
    return dict(columns_of(label)).get(column)
