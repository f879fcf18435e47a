"""Lines of a dumped configuration, as a dialect file describes them: `--{name} {value}`, to an expression."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sweepscope.pipeline.logs.declared.line_template import Anything, Element, Field, Literal, Maybe, Template

_BEGIN_NAME = r"(?:^|[^\w./-])"
_NAME_AND_VALUE = {
    "{name}": r"""["']?([A-Za-z][\w./-]*)["']?""",
    "{value}": r"""(\[[^\s,\[\]]+\]|"[^"]*"|'[^']*'|[^\s,;`(){}\[\]$][^\s,;`(){}\[\]]*)""",
}
"""A value that begins with a dollar stands for another one: `max_seq_len: ${data.max_seq_len}`."""


def check_field(name: str, word: str | None) -> None:
    """Raises ValueError for a field that such a line cannot have; it fills no column."""
    if name not in ("name", "value", "_") or word:
        raise ValueError(f"{{{name}}} means nothing here: there are {{name}}, {{value}}, {{_}} and {{*}}")


def argument_regex(template: Template) -> str:
    """Finds the lines, with the name and the value in groups."""
    return _BEGIN_NAME + "".join(_regex(part) for part in template.elements)


def argument_literals(template: Template, names: Iterable[str]) -> tuple[str, ...]:
    """Texts of which a line that names one of the arguments holds one: the names with what is printed close to them.

    >>> argument_literals(Template((Literal("--"), Field("{name}", None), Literal(" "))), ["tp"])
    ('--tp', "--'tp'", '--"tp"')
    """
    at = next(at for at, part in enumerate(template.elements) if isinstance(part, Field) and part.text == "{name}")
    before, after = (template.elements[near : near + 1] if near >= 0 else () for near in (at - 1, at + 1))
    head = re.split(r"\s", before[0].text)[-1] if before and isinstance(before[0], Literal) else ""
    tail = re.split(r"\s", after[0].text)[0] if after and isinstance(after[0], Literal) else ""
    if not head and not tail:
        return tuple(names)
    return tuple(f"{head}{quote}{name}{quote}{tail}" for name in names for quote in ("", "'", '"'))


def _regex(part: Element) -> str:
    if isinstance(part, Literal):
        return r"\s*".join(re.escape(word) for word in re.split(r"\s+", part.text))
    if isinstance(part, Maybe):
        return f"(?:{''.join(_regex(inner) for inner in part.parts)})?"
    return ".*?" if isinstance(part, Anything) else _NAME_AND_VALUE.get(part.text, r"\S+?")
