"""What inference says of a log: the dialect file, and what speaks for each of its columns."""

from __future__ import annotations

from dataclasses import dataclass

from sweepscope.pipeline.logs.declared.rules import Document


@dataclass(frozen=True)
class Inferred:
    """One column that was found, or nearly.

    Attributes:
        column: as a dialect file names it.
        field: the piece by which it is found, or the words that name it.
        unit: word of a dialect file.
        confidence: word of vocab.CONFIDENCE.
        reason: what speaks for it.
        is_used: it is read; otherwise it is not sure enough.
        line_no, text: an example.
    """

    column: str
    field: str
    unit: str
    confidence: str
    reason: str
    is_used: bool
    line_no: int
    text: str


@dataclass(frozen=True)
class Inference:
    """What a log was taken for.

    Attributes:
        toml: text of the dialect file; "" where nothing was found.
        document: its rules.
        has_steps: whether steps were found; otherwise the rules are of settings only.
        columns: what was found.
        step_lines: numbers of lines that are steps, of `seen_lines`, all that were looked at.
        is_bare: the log holds rows of numbers and no word: only its name tells whether it is that of a training.
    """

    toml: str
    document: Document | None
    has_steps: bool
    columns: tuple[Inferred, ...]
    step_lines: frozenset[int] = frozenset()
    seen_lines: frozenset[int] = frozenset()
    is_bare: bool = False


NOTHING = Inference("", None, has_steps=False, columns=())
