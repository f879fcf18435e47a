"""Nested configuration objects in the layout of Python's `pprint` for dataclasses, which nanotron's config dump uses.

Written out here rather than borrowed from `pprint`, so that the text does not change with the Python version.
"""

from __future__ import annotations

from dataclasses import dataclass

_WIDTH = 80  # pprint's default


@dataclass(frozen=True)
class Node:
    """A dataclass-like object: type name and fields in order. A field's value is another node or its repr."""

    name: str
    fields: tuple[tuple[str, Node | str], ...]


def pretty(node: Node, indent: int = 0) -> str:
    """`node` on one line when it fits, else one field per line aligned behind the opening bracket.

    >>> print(pretty(node("A", x=1, y=node("B", z="a" * 70, w=2))))
    A(x=1,
      y=B(z='aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',
          w=2))
    """
    single = _flat(node)
    if indent + len(single) <= _WIDTH:
        return single
    start = indent + len(node.name) + 1
    parts = [
        f"{key}=" + (pretty(value, start + len(key) + 1) if isinstance(value, Node) else value)
        for key, value in node.fields
    ]
    return f"{node.name}(" + (",\n" + " " * start).join(parts) + ")"


def _flat(node: Node) -> str:
    parts = (f"{key}=" + (_flat(value) if isinstance(value, Node) else value) for key, value in node.fields)
    return f"{node.name}(" + ", ".join(parts) + ")"


def node(type_name: str, /, **fields: Node | str | int | float | bool | None) -> Node:
    """Shorthand: plain values are shown as Python shows them; pass text that is already a repr as `Raw`.

    >>> pretty(node("TokensArgs", sequence_length=4096, name="x", dtype=Raw("torch.bfloat16")))
    "TokensArgs(sequence_length=4096, name='x', dtype=torch.bfloat16)"
    """
    return Node(type_name, tuple((key, _shown(value)) for key, value in fields.items()))


class Raw(str):
    """Text that is printed without quotes in a dump (an enum, a dtype, an object's repr)."""

    __slots__ = ()


def _shown(value: Node | str | int | float | bool | None) -> Node | str:
    if isinstance(value, Node | Raw):
        return value
    return repr(value)
