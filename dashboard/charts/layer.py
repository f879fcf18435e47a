"""Shapes and annotations of a figure, laid on it together.

plotly checks all that a figure has whenever one more is added: a grid of 28 cells took a second that way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go


@dataclass
class Layer:
    """What is to be laid on a figure, in the words of its methods of the same names."""

    shapes: list[dict[str, Any]] = field(default_factory=list)
    annotations: list[dict[str, Any]] = field(default_factory=list)

    def add_shape(self, **shape: Any) -> None:
        """One more shape, as `go.Figure.add_shape` takes it."""
        self.shapes.append(shape)

    def add_annotation(self, **annotation: Any) -> None:
        """One more annotation, as `go.Figure.add_annotation` takes it."""
        self.annotations.append(annotation)

    def lay_on(self, figure: go.Figure) -> None:
        """Puts all of it on the figure, over what that has."""
        figure.update_layout(
            shapes=[*figure.layout.shapes, *self.shapes], annotations=[*figure.layout.annotations, *self.annotations]
        )
