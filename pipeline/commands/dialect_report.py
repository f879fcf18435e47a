"""The text of `sweepscope dialect test`."""

from __future__ import annotations

from collections.abc import Mapping

from sweepscope.pipeline.inspection.dialect_test import MAX_LOG_BYTES, Tested
from sweepscope.pipeline.logs.declared.explain import Explanation, Found, Shape
from sweepscope.pipeline.logs.declared.near import Near
from sweepscope.pipeline.logs.declared.rules import Document

_WIDTH = 110
_LEAD = 30
"""Characters kept before the one that a mark points to."""


def as_text(tested: Tested, document: Document) -> str:
    """The report on one log."""
    result = tested.explanation
    part = "" if tested.is_whole else f", the first {MAX_LOG_BYTES >> 20} MiB"
    lines = [f"{tested.path}: {result.lines:,} lines{part}", _owner(result, document), ""]
    lines.append(
        f"steps     {result.steps:,}, and {result.rejects:,} lines that look like a step and do not parse (rejects)"
    )
    lines.append(f"settings  {_values(result.settings) or 'none'}")
    for path, read in tested.files.items():
        lines.append(f"{path.rsplit('/', 1)[-1]}  {read if isinstance(read, str) else _values(read) or 'none'}")
    for found in result.rules:
        lines += ["", *_rule(found)]
    if result.unmatched:
        lines += ["", f"Not matched by any rule: {result.unmatched:,} lines. Those with numbers, by template:"]
        lines += [_shape(shape) for shape in result.shapes] or ["  none"]
    return "\n".join(lines)


def _values(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _owner(result: Explanation, document: Document) -> str:
    counts = ", ".join(f"{literal!r} {hits:,} times" for literal, hits in result.signature.items())
    if not document.signature:
        if result.owner == document.name:
            return f"read by {document.name}: its steps are found, and no other dialect knows the log"
        reason = f"but by {result.owner}, which knows the log" if result.owner else "no line is one of its steps"
        return f"NOT read by {document.name}: {reason}"
    if result.owner == document.name:
        return f"read by {document.name}: {counts}"
    if result.owner is None:
        return f"NOT read by {document.name}: the log does not contain its signature ({counts})"
    return f"NOT read by {document.name} but by {result.owner}, whose signature the log contains ({counts})"


def _rule(found: Found) -> list[str]:
    number = found.location.rsplit(":", 1)[-1]
    lines = [f"{found.label} (line {number} of the file): {found.lines:,} lines, {found.nearly:,} nearly"]
    if found.pattern:
        lines.append(f"  {cut(found.pattern, 0)[0]}")
    if found.line_no is not None:
        lines.append(f"  {found.line_no:>7}  {cut(found.text, 0)[0]}")
        if found.values:
            lines.append(f"           = {_values(found.values)}")
    if found.unused:
        lines.append(f"  never printed: {', '.join(found.unused)}")
    if found.unmapped:
        lines.append(f"  printed, and in no column: {', '.join(found.unmapped)}")
    for near in found.near:
        lines += _near(near)
    if found.nearly > len(found.near):
        lines.append(f"  ... and {found.nearly - len(found.near):,} more that nearly match")
    return lines


def _near(near: Near) -> list[str]:
    kind = "nearly, a reject" if near.is_reject else "nearly"
    if near.at is None:
        return [f"  {near.line_no:>7}  {cut(near.text, 0)[0]}", f"           {kind}: {near.wanted}"]
    shown, at = cut(near.text, near.at)
    word = shown[at:].split(" ", 1)[0]
    what = "the line ends" if near.at >= len(near.text) else "stops here"
    mark = "^" * max(1, len(word))
    return [f"  {near.line_no:>7}  {shown}", f"           {' ' * at}{mark} {kind}: {what}, wanted {near.wanted}"]


def _shape(shape: Shape) -> str:
    return f"  {shape.lines:>7,} x  line {shape.line_no}: {cut(shape.text, 0)[0]}"


def cut(text: str, at: int) -> tuple[str, int]:
    """A part of `text` around character `at` that fits a terminal, and where `at` is in it. Tabs become blanks.

    >>> cut("a" * 200, 150)[0][:5], cut("step 5", 5)
    ('...aa', ('step 5', 5))
    """
    text = "".join(char if char.isprintable() else " " for char in text)
    if len(text) <= _WIDTH:
        return text, at
    begin = max(0, min(at - _LEAD, len(text) - _WIDTH + 3)) if at > _WIDTH - _LEAD else 0
    head = "..." if begin else ""
    shown = head + text[begin : begin + _WIDTH]
    return shown + ("..." if begin + _WIDTH < len(text) else ""), at - begin + len(head)
