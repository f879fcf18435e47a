"""Lines of a dumped configuration, as a dialect file describes them: `--{name} {value}`, to an expression."""

from __future__ import annotations

import re

from sweepscope.pipeline.logs.declared.line_template import Anything, Element, Literal, Maybe, Template

_BEGIN_NAME = r"(?:^|[^\w./-])"
_NAME_AND_VALUE = {
    "{name}": r"""["']?([A-Za-z][\w./-]*)["']?""",
    "{value}": r"""(\[[^\s,\[\]]+\]|"[^"]*"|'[^']*'|[^\s,;`(){}\[\]]+)""",
}


def check_field(name: str, word: str | None) -> None:
    """Raises ValueError for a field that such a line cannot have; it fills no column."""
    if name not in ("name", "value", "_") or word:
        raise ValueError(f"{{{name}}} means nothing here: there are {{name}}, {{value}}, {{_}} and {{*}}")


def argument_regex(template: Template) -> str:
    """Finds the lines, with the name and the value in groups."""
    return _BEGIN_NAME + "".join(_regex(part) for part in template.elements)


def _regex(part: Element) -> str:
    if isinstance(part, Literal):
        return r"\s*".join(re.escape(word) for word in re.split(r"\s+", part.text))
    if isinstance(part, Maybe):
        return f"(?:{''.join(_regex(inner) for inner in part.parts)})?"
    return ".*?" if isinstance(part, Anything) else _NAME_AND_VALUE.get(part.text, r"\S+?")
