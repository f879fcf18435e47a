"""Every value of a configuration file under its own name: JSON, YAML, TOML, gin, Python, or options of a command.

A document may hold the command itself, as the task files of SkyPilot (`run`), dstack (`commands`), Azure ML (`command`)
and Determined (`entrypoint`) do: a text in it that starts a script is read as a script.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator, Mapping

import yaml

from sweepscope.pipeline.logs.evidence.argument_values import (
    command_values,
    node_values,
    option_values,
    words_of,
)
from sweepscope.pipeline.logs.sidecars.hparams import plain
from sweepscope.pipeline.logs.sidecars.kubernetes_manifest import is_manifest, manifest_commands
from sweepscope.pipeline.text.shell_script import commands_of

_RESULTS = ("trainer_state.json", "train_results.json", "all_results.json", "eval_results.json")
"""Files with settings that hold what became of a run, too: these are no arguments."""
_SCRIPTS = (".sh", ".sbatch", ".slurm")
_OPTIONS = (*_SCRIPTS, ".txt", ".args", ".log", ".cmd")


_SBATCH = re.compile(
    r"(?m)^[ \t]*#SBATCH[ \t]+(?:(?:--nodes[= ]|-N[ \t]*)(?P<nodes>\d+)|"
    r"--(?:gpus-per-node[= ]|gres[= ]gpu:)(?:[\w.-]+:)?(?P<gpus_per_node>\d+))[ \t]*(?:#.*)?$"
)
"""What a script asks Slurm for (sbatch's manual)."""
_SET_BY_SLURM = {
    "SLURM_NNODES": "nodes",
    "SLURM_JOB_NUM_NODES": "nodes",
    "SLURM_GPUS_PER_NODE": "gpus_per_node",
    "SLURM_GPUS_ON_NODE": "gpus_per_node",
}
"""Variables that Slurm sets in a job as the script has asked (sbatch's manual, output environment variables)."""
_LAUNCHER = re.compile(
    r"\b(?:(?P<one>torchrun|torch\.distributed\.(?:run|launch))|accelerate\s+launch|deepspeed)\b(?P<rest>[^\n;&|]*)"
)
"""Launchers and their options; `one` of those that start a single node unless something else is asked for."""
_COMMAND = re.compile(r"\.py\b[^\n]*\s(?:--?[A-Za-z]|[\w.]+=)|\s-m\s+\w+\.[\w.]+[^\n]*\s(?:--?[A-Za-z]|[\w.]+=)")
"""A script, or a module, with options or overrides behind it."""
# gin-config: bindings `[scope/]name.parameter = value` and macros `NAME = value` (docs/index.md of google/gin-config).
_GIN = re.compile(r"(?m)^(?P<name>[A-Za-z_][\w./]*)\s*=\s*(?P<value>[^\s@%\[({#][^#\n]*?)\s*(?:#.*)?$")
_DEEPEST = 8
_NO_LITERAL = object()
_OF_LAUNCHER = ("nproc_per_node", "nnodes", "num_gpus", "num_nodes", "num_processes", "num_machines")
"""Options of torchrun (torch/distributed/run.py), DeepSpeed's launcher and accelerate's."""


def document_values(path: str, text: str) -> list[tuple[str, str]]:
    """Dotted names and values of the configuration at `path`; none of a file of another kind, or a damaged one."""
    name = path.rsplit("/", 1)[-1].lower()
    if name in _RESULTS:
        return []
    try:
        return list(_values(name, text))
    except (ValueError, RecursionError, yaml.YAMLError):
        return []  # the reader of its settings has accepted it, or has said why not


def is_script(path: str) -> bool:
    """Whether a file is a shell script, which may hold no option of a training at all."""
    return path.lower().endswith(_SCRIPTS)


def _values(name: str, text: str) -> Iterator[tuple[str, str]]:
    if name.endswith(".json"):
        yield from _document(json.loads(text))
    elif name.endswith((".yaml", ".yml")) and is_manifest(text):
        values, commands = manifest_commands(text)
        yield from values
        for command in commands:
            yield from _script_values(command)
    elif name.endswith((".yaml", ".yml")):
        yield from _document(plain(text))
    elif name.endswith(".toml"):
        yield from _document(tomllib.loads(text))
    elif name.endswith(".gin"):
        yield from ((binding["name"].replace("/", "."), _bare(binding["value"])) for binding in _GIN.finditer(text))
    elif name.endswith(".py"):
        yield from _assigned(text)
    elif name.endswith(_OPTIONS):
        yield from _script_values(text)


def _script_values(text: str) -> Iterator[tuple[str, str]]:
    """What a script states of nodes and cards, and options of its trainings; none that two trainings in it differ in.

    >>> list(_script_values("TP=2\\nARGS='--tp $TP --lr $LR'\\npython train.py $ARGS --bf16\\n"))
    [('tp', '2'), ('bf16', 'True')]
    >>> list(_script_values("python train.py --tp 2 --pp 1\\npython train.py --tp 4 --pp 1\\n"))
    [('pp', '1')]
    """
    joined = text.replace("\\\n", " ")
    if ".py" not in joined and not _LAUNCHER.search(joined):
        yield from option_values(words_of(re.sub(r"(?m)^\s*#.*$", "", joined)))
        return
    asked = {name: value for hit in _SBATCH.finditer(joined) for name, value in hit.groupdict().items() if value}
    yield from ((f"sbatch.{name}", value) for name, value in asked.items())
    known = {variable: asked[name] for variable, name in _SET_BY_SLURM.items() if name in asked}
    stated: dict[str, set[str]] = {}
    for words in commands_of(joined, known):
        command = " ".join(words)
        options = command_values(command) if _COMMAND.search(command) else ()
        for name, value in (*_launch_values(command), *options):
            stated.setdefault(name, set()).add(value)
    for name, (value, *others) in stated.items():
        if not others and "$" not in value:
            yield name, value


def _launch_values(command: str) -> Iterator[tuple[str, str]]:
    """What a command states of nodes and cards to the launcher in front of the training's own script.

    >>> list(_launch_values("torchrun --nproc-per-node 8 train.py --nnodes 7"))
    [('launcher.nproc_per_node', '8'), ('launcher.nnodes', '1')]
    >>> list(_launch_values("torchrun --nproc-per-node 8 --nnodes $SLURM_NNODES train.py"))
    [('launcher.nproc_per_node', '8')]
    """
    for found in _LAUNCHER.finditer(command):
        own = re.split(r"\s\S+\.py\b|\s-m\s", found["rest"], maxsplit=1)[0]
        asked = {
            name: value for name, value in option_values(words_of(own)) if name in _OF_LAUNCHER and value.isdigit()
        }
        if found["one"] and "nproc_per_node" in asked and "nnodes" not in own:
            asked["nnodes"] = "1"
        yield from ((f"launcher.{name}", value) for name, value in asked.items())


def _document(node: object) -> Iterator[tuple[str, str]]:
    """Values of a document, and those of the commands in it.

    >>> list(_document({"name": "a", "run": "torchrun --nproc_per_node 8 ft.py --tp 2"}))[2:]
    [('launcher.nproc_per_node', '8'), ('launcher.nnodes', '1'), ('tp', '2')]
    """
    if not isinstance(node, Mapping):
        return
    yield from node_values(node)
    for command in _commands(node, 0):
        yield from _script_values(command)


def _assigned(code: str) -> Iterator[tuple[str, str]]:
    """Plain values that Python code assigns, those of `dict(...)` under its name; a name that it assigns twice, last.

    >>> list(_assigned("n_layer = 12\\ngas = 5 * 8\\nmodel = dict(dim=768, head=dict(n=2))\\nx = load()\\n"))
    [('n_layer', '12'), ('gas', '40'), ('model.dim', '768'), ('model.head.n', '2')]
    """
    try:
        statements = ast.parse(code).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return
    values: dict[str, object] = {}
    for statement in statements:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
        value = _literal(statement.value, 0)
        if isinstance(target, ast.Name) and value is not _NO_LITERAL:
            values[target.id] = value
    yield from node_values(values)


def _literal(node: ast.expr, depth: int) -> object:
    """The value of an expression of constants, products and `dict(...)`; _NO_LITERAL of any other."""
    if depth > _DEEPEST:
        return _NO_LITERAL
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
        found = {word.arg: _literal(word.value, depth + 1) for word in node.keywords if word.arg}
        return {name: value for name, value in found.items() if value is not _NO_LITERAL}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        factors = _literal(node.left, depth + 1), _literal(node.right, depth + 1)
        numbers = [factor for factor in factors if isinstance(factor, int | float)]
        return numbers[0] * numbers[1] if len(numbers) == len(factors) else _NO_LITERAL
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return _NO_LITERAL


def _commands(node: object, depth: int) -> Iterator[str]:
    """Texts in a document that start a script with options; a list of commands is one script."""
    if depth > _DEEPEST:
        return
    if isinstance(node, Mapping):
        for inner in node.values():
            yield from _commands(inner, depth + 1)
    elif isinstance(node, list) and node and all(isinstance(line, str) for line in node):
        # A list of words is one command, a list of commands has blanks in them.
        has_commands = any(" " in line.strip() for line in node)
        yield from _commands(("\n" if has_commands else " ").join(node), depth + 1)
    elif isinstance(node, list):
        for inner in node:
            yield from _commands(inner, depth + 1)
    elif isinstance(node, str) and _COMMAND.search(node.replace("\\\n", " ")):
        yield node


def _bare(value: str) -> str:
    return value.strip().strip("'\"")
