"""Names and values in a text that states arguments: a repr, a JSON object or a dict, a command line, a document."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NAME = re.compile(r"[A-Za-z_][\w.-]*\Z")
_CLASS = re.compile(r"([A-Za-z_][\w.]*)\(\Z")
_UNNAMED = re.compile(r"(?:.*\.)?(?:Namespace|\w*(?:Arguments|Args)|Config|\w*H?Params)\Z")
"""Classes whose name says nothing of what they hold: their fields are the program's arguments."""
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|<[^<>]*>|[()\[\]{},=]|[^()\[\]{},=<'"]+|.""")
# A tenth of what shlex takes, which goes letter by letter.
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.""")
_SHELL_WORD = re.compile(rf"(?:{_QUOTED.pattern}|\S)+")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_LONGEST_LIST = 64
_DEEPEST = 8
_MOST = 4_000


def repr_values(texts: Sequence[str], lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """(line, dotted name, value) of the keyword arguments in a repr such as `Config(a=1, b=Other(c='x'))`.

    Fields of nested objects have the field before them, those of an outer object the name of its class, unless it is
    one like `Namespace`.

    Args:
        texts: the repr by lines, from the name of its class on.
        lines: number and text of these lines.
    """
    words: list[str] = []
    path: list[tuple[str, str]] = []
    name, line = "", 0
    for at, text in enumerate(texts):
        for token in _TOKEN.finditer(text):
            part = token[0]
            is_inner = any(not label for _, label in path)
            if part in _CLOSING and not is_inner and part == "(" and (kind := _class_of(words)):
                path.append((")", name or ("" if _UNNAMED.match(kind) else kind) or "."))
                words, name = [], ""
            elif part in _CLOSING:
                path.append((_CLOSING[part], ""))
                words.append(part)
            elif path and part == path[-1][0]:
                _, label = path.pop()
                if label:
                    yield from _field(path, label, name, words, lines[line][0])
                    words, name = [], ""
                    if not path:
                        return
                else:
                    words.append(part)
            elif part == "," and not is_inner:
                yield from _field(path, "", name, words, lines[line][0])
                words, name = [], ""
            elif part == "=" and not is_inner and not name and _NAME.match("".join(words).strip()):
                name, words, line = "".join(words).strip(), [], at
            else:
                words.append(part)


def _class_of(words: Sequence[str]) -> str:
    """The class whose fields a bracket opens, where `words` end in its name."""
    found = _CLASS.search("".join(words) + "(")
    return found[1] if found else ""


def _field(
    path: Sequence[tuple[str, str]], closed: str, name: str, words: Sequence[str], line: int
) -> Iterator[tuple[int, str, str]]:
    """The field that a comma or the end of its object `closed` ends, if it is one."""
    value = " ".join("".join(words).split())
    if name and value:
        parents = [label for _, label in path if label not in ("", ".")]
        parents += [closed] if closed not in ("", ".") else []
        yield line, ".".join([*parents, name]), _unquoted(value)


def json_values(text: str) -> Iterator[tuple[str, str]]:
    """Leaves of a JSON object or a Python dict; none of another text."""
    try:
        node = json.loads(text)
    except ValueError:
        try:
            node = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return
    if isinstance(node, Mapping):
        yield from node_values(node)


def node_values(node: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Dotted paths and values of a document, at most as many as a run may have; long lists are left out.

    A section that is repeated by aliases is read once.
    """
    left = _MOST
    stack: list[tuple[str, Any, int]] = [("", node, 0)]
    seen: set[int] = set()
    while stack and left:
        path, value, depth = stack.pop()
        if isinstance(value, Mapping):
            if id(value) in seen or depth >= _DEEPEST:
                continue
            seen.add(id(value))
            inner = [(f"{path}.{key}" if path else str(key), item, depth + 1) for key, item in value.items()]
            stack += reversed(inner[:left])
        elif not _is_data(value):
            left -= 1
            yield path, "None" if value is None else str(value)


def _is_data(value: object) -> bool:
    """Whether a value is a list of records or a long one: results, not arguments."""
    if not isinstance(value, list | tuple):
        return False
    return len(value) > _LONGEST_LIST or any(isinstance(item, Mapping | list) for item in value)


def command_values(text: str) -> Iterator[tuple[str, str]]:
    """Options of a command line behind its script or module, with `True` for switches; names with `_`, as argparse has
    them.

    >>> list(command_values("torchrun --nproc-per-node 8 train.py --lr 1e-4 --bf16 --tp=2 model.layers=4"))
    [('lr', '1e-4'), ('bf16', 'True'), ('tp', '2'), ('model.layers', '4')]
    >>> list(command_values("torchrun --tee 3 -m torchtitan.train --compile.enable --training.steps=10"))
    [('compile.enable', 'True'), ('training.steps', '10')]
    """
    words = words_of(text)
    modules = [at + 1 for at, word in enumerate(words[:-1]) if word == "-m" and "." in words[at + 1]]
    script = next((at for at, word in enumerate(words) if word.endswith(".py")), max(modules, default=-1))
    yield from option_values(words[script + 1 :])


def words_of(text: str) -> list[str]:
    """The words of a command line as a shell takes them, without variables; a quote that is never closed is a letter.

    >>> words_of("train.py --name 'a b' --lr='1e-4' it's")
    ['train.py', '--name', 'a b', '--lr=1e-4', "it's"]
    """
    return [_QUOTED.sub(_bare, word) for word in _SHELL_WORD.findall(text)]


def _bare(quoted: re.Match[str]) -> str:
    return quoted[0][1:-1] if quoted[0][0] in "\"'" else quoted[0][1:]


def option_values(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Names and values of `--name value`, `--name=value`, `--switch` and `section.name=value`."""
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in (";", "|", "&&", "||", ">", ">>", "2>&1", "&"):
            return
        name, separator, value = word.lstrip("-+").partition("=")
        if not _NAME.match(name) or not (word.startswith("-") or separator):
            continue
        if word.startswith("-"):
            name = name.replace("-", "_")
        if not separator:
            given = []
            while at < len(words) and not _is_option(words[at]):
                given.append(words[at])
                at += 1
            value = " ".join(given) or "True"
        yield name, value


def _is_option(word: str) -> bool:
    return re.match(r"--?[A-Za-z]|[;|&>]", word) is not None or "=" in word


def _unquoted(value: str) -> str:
    """
    >>> _unquoted("'adam'"), _unquoted("<IntervalStrategy.STEPS: 'steps'>"), _unquoted("None")
    ('adam', 'STEPS', 'None')
    """
    if member := re.fullmatch(r"<(?:\w+\.)*(\w+): [^<>]*>", value):
        value = member[1]
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
