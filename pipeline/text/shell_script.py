"""Commands of a shell script with the variables that the script itself sets: what it starts, as far as its text says.

Scripts of trainings keep their options in variables and arrays (Megatron-LM train_gpt3_175b_distributed.sh,
Megatron-DeepSpeed examples_deepspeed), so that the command alone is `pretrain_gpt.py ${MODEL_ARGS[@]} $PARALLEL_ARGS`.

Read are assignments in order, `+=`, arrays, `$NAME`, `${NAME}`, `${NAME[@]}`, whole-number arithmetic, and branches
that compare known values. Nothing is executed: what comes from outside stays as it is written, with its `$`: arguments
of the script, the environment, defaults (`${TP:-1}`: the environment may have set it otherwise), output of commands,
and what a loop or another branch sets.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

_COMMENT = re.compile(r"(?m)(?:^|(?<=[\s;]))#.*$")
_HEREDOC = re.compile(r"<<-?\s*([\"']?)(\w+)\1([^\n]*)\n.*?^\s*\2\s*$", re.DOTALL | re.MULTILINE)
_ARITHMETIC = r"\$\(\((?:[^()]|\([^()]*\))*\)\)"
_OUTPUT = r"\$\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|`[^`]*`"
_PIECE = rf"'[^']*'|\"(?:[^\"\\]|\\.)*\"|{_ARITHMETIC}|{_OUTPUT}|\$\{{[^}}]*\}}|\\.|[^\s;&|()<>'\"`\\]"
_TOKEN = re.compile(
    rf"(?:(?<=\s)\d)?[<>]+&?[ \t]*(?:{_PIECE})+|"  # a redirection, with its file
    rf"(?P<word>(?:{_PIECE})+)|(?P<end>\n|;;?|&&?|\|\|?)|(?P<open>\()|(?P<close>\))|\S"
)
_ASSIGNS = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<adds>\+?)=(?P<value>.*)", re.DOTALL)
_VARIABLE = re.compile(rf"{_ARITHMETIC}|\$\{{(?P<braced>[A-Za-z_]\w*)(?:\[[@*]\])?\}}|\$(?P<bare>[A-Za-z_]\w*)")
_DECLARES = frozenset({"export", "declare", "local", "readonly", "typeset"})
_LOOPS = frozenset({"for", "while", "until", "case", "select", "{"})
_CLOSES = frozenset({"fi", "done", "esac", "}"})
_NOTHING = frozenset({"then", "do", "time", "exec", "!"})
_COMPARES: Mapping[str, Callable[[str, str], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "-eq": lambda one, other: int(one) == int(other),
    "-ne": lambda one, other: int(one) != int(other),
    "-gt": lambda one, other: int(one) > int(other),
    "-ge": lambda one, other: int(one) >= int(other),
    "-lt": lambda one, other: int(one) < int(other),
    "-le": lambda one, other: int(one) <= int(other),
}
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}
_LONGEST = 100_000
"""Letters of a value: one that adds itself to itself grows without end."""

Variables = dict[str, str | None]
"""Values by name; None for what the script does set, but to nobody knows what."""


def commands_of(script: str, known: Mapping[str, str] | None = None) -> Iterator[list[str]]:
    """Words of each command in order, split at blanks wherever a value brings some.

    Args:
        script: its text.
        known: variables that are set from outside, such as SLURM_NNODES.

    >>> list(commands_of("TP=4\\nARGS=(--tp $TP\\n --layers $((TP * 8)))\\npython train.py ${ARGS[@]} --lr $LR\\n"))
    [['python', 'train.py', '--tp', '4', '--layers', '32', '--lr', '$LR']]
    """
    variables: Variables = dict(known or {})
    blocks: list[_Block] = []
    text = _HEREDOC.sub(r"\3\n", _COMMENT.sub("", script.replace("\\\n", " ")))
    for words, is_conditional in _statements(text):
        rest = _in_blocks(words, blocks, variables)
        if any(block.runs is False for block in blocks):
            continue
        rest = _assign(rest, variables, is_certain=not is_conditional and all(block.runs for block in blocks))
        if command := [part for word in rest for part in _expanded(word, variables).split()]:
            yield command


@dataclass
class _Block:
    """A branch or a loop: whether it runs, and whether an earlier branch of it did; None where that is unknown."""

    runs: bool | None
    ran: bool | None = False


def _in_blocks(words: list[str], blocks: list[_Block], variables: Variables) -> list[str]:
    """Open and close `blocks` as the statement says; the words of its own command."""
    while words and words[0] in {"if", "elif", "else"} | _LOOPS | _CLOSES | _NOTHING:
        word, words = words[0], words[1:]
        if word == "if":
            blocks.append(_Block(_holds(words, variables)))
            return []
        if word in _LOOPS:
            blocks.append(_Block(None))
            if word in ("for", "select"):
                variables.update(dict.fromkeys(words[:1]))
            if word != "{":
                return []
        elif word in _CLOSES and blocks:
            blocks.pop()
        elif word in ("elif", "else") and blocks:
            block = blocks[-1]
            earlier = (block.ran, block.runs)
            block.ran = True if True in earlier else None if None in earlier else False
            holds = True if word == "else" else _holds(words, variables)
            block.runs = False if block.ran or holds is False else None if block.ran is None else holds
            words = words if word == "else" else []
    return words


def _holds(words: list[str], variables: Variables) -> bool | None:
    """Whether `[ one = other ]` holds; None where a value is unknown or the condition is another."""
    test = [_expanded(word, variables) for word in words]
    if len(test) != 5 or test[0] not in ("[", "[[") or "$" in test[1] + test[3]:
        return None
    try:
        return _COMPARES[test[2]](test[1], test[3])
    except (KeyError, ValueError):
        return None


def _statements(text: str) -> Iterator[tuple[list[str], bool]]:
    """Words of each statement, as they are written, and whether it depends on how the one before `&&` or `||` ended.

    An array is one word with its elements.
    """
    words: list[str] = []
    is_conditional = False
    array: list[str] | None = None
    for token in _TOKEN.finditer(text):
        if array is not None:
            if token["close"]:
                words[-1] += " ".join(map(_bare, array))
                array = None
            elif token["word"]:
                array.append(token["word"])
        elif token["open"] and words and words[-1].endswith("="):
            array = []
        elif token["word"]:
            words.append(token["word"])
        elif token["end"] or token["open"] or token["close"]:
            yield words, is_conditional
            words, is_conditional = [], token["end"] in ("&&", "||")
    yield words, is_conditional


def _assign(words: list[str], variables: Variables, *, is_certain: bool) -> list[str]:
    """Set the variables of a statement; the words of its command, whose own environment is in front and sets none."""
    is_declared = bool(words) and words[0] in _DECLARES
    if is_declared:
        words = [word for word in words[1:] if not word.startswith("-")]
    command = list(itertools.dropwhile(_ASSIGNS.fullmatch, words))
    if command and not is_declared:
        return command
    for word in words:
        if (hit := _ASSIGNS.fullmatch(word)) is None:
            continue  # `export NAME` of one that is set
        before = variables.get(hit["name"], "")
        value: str | None = _expanded(hit["value"], variables)
        if hit["adds"]:
            value = None if before is None else f"{before} {value}"
        if not is_certain and value != before:  # options that a branch may add change none of those before them
            value = before if before and (value or "").startswith(before) else None
        variables[hit["name"]] = value if len(value or "") <= _LONGEST else None
    return []


def _expanded(word: str, variables: Variables) -> str:
    """A word without its quotes, and with what is known of its variables."""

    def value_of(hit: re.Match[str]) -> str:
        name = hit["braced"] or hit["bare"]
        value = variables.get(name) if name else _computed(hit[0][3:-2], variables)
        return hit[0] if value is None else value

    return _VARIABLE.sub(value_of, _bare(word))


def _bare(word: str) -> str:
    """A word without quotes, and with `$(...)` for backticks."""
    return re.sub(r"`([^`]*)`", r"$(\1)", re.sub(r"[\"']|\\(?=[\"'])", "", word))


def _computed(expression: str, variables: Variables) -> str | None:
    """The value of whole-number arithmetic; None where a variable is unknown.

    >>> _computed("N * GPUS / (TP * 2)", {"N": "4", "GPUS": "8", "TP": "2"}), _computed("N*2", {})
    ('8', None)
    """
    try:
        return str(_number(ast.parse(expression.replace("$", "").strip(), mode="eval").body, variables))
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, MemoryError, RecursionError):
        return None


def _number(node: ast.expr, variables: Variables) -> int:
    """Raises ValueError for what is no whole number."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        return int(variables.get(node.id) or "")
    if isinstance(node, ast.BinOp) and (compute := _OPERATORS.get(type(node.op))):
        return compute(_number(node.left, variables), _number(node.right, variables))
    raise ValueError("no whole-number arithmetic")
