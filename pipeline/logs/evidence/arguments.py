"""Arguments as trainers print them, under their own names: what a run was launched with, whatever it is called.

Forms, each of which any trainer may print:

- a table with dots (Megatron-LM arguments.py `_print_args`, DeepSpeed runtime/config.py `print_user_config`);
- the repr of an object, on one line or over many (argparse's `Namespace`, transformers' `TrainingArguments`,
  dataclasses of nanotron and Megatron-LM's `DistributedDataParallelConfig`);
- a JSON object or a Python dict behind a word such as `args:` (torchtitan's `Running with args`);
- a line that is a JSON object of objects without metrics, as own loggers of records begin;
- a block of `name: value` lines (YAML as Megatron-Bridge and Composer print it, JSON with indentation);
- a command line: `python train.py --name value`, or `torchrun -m package.train --name value`;
- what says that layers are compiled (torchtitan distributed/compile.py, nanoGPT train.py), as `torch_compile`.

`lines_of` keeps lines that may hold some, judged one by one, so that it does not matter how a file was cut;
`read_arguments` takes them together. Lines of blocks count only among the first EARLY_LINES of a file, for further on
`name: value` is what metrics look like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import polars as pl

from sweepscope.pipeline.logs.evidence.argument_values import command_values, json_values, repr_values
from sweepscope.pipeline.logs.facts import SETTING_FACTS
from sweepscope.pipeline.text.line_templates import LineTemplates

EARLY_LINES = 2_000
"""Lines of a file among which blocks of `name: value` are looked for."""
MOST_LINES = 4_000
"""Lines of a file that are kept: the longest dumps of arguments have some 900."""
ARGUMENT_LINES = pl.Schema(
    {"source": pl.Int64(), "line_no": pl.Int64(), "rank": pl.Int64(), "text": pl.String()},
)
"""One row per line that may hold arguments, cleaned."""

# ASCII classes: polars compiles those of Unicode anew in each thread, at 20 ms a pattern.
_WORD = "[A-Za-z0-9_]"
_NAME = "[A-Za-z_][A-Za-z0-9_.-]*"
_CLASS = rf"{_WORD}*(?:Namespace|Arguments|Args|Config|Params|HParams)\("
_MODULE = " -m [A-Za-z_][A-Za-z0-9_]*[.][A-Za-z0-9_.]+"
"""One of a package: `python -m pip install` and the like train nothing."""
_COMMAND = rf"(?:\.py[\"']?|{_MODULE}) +(?:[^ ].* )?(?:--?[A-Za-z]|[+A-Za-z_.]+=)"
_COMPILES = r"[Cc]ompiling (?:each TransformerBlock|the model)\b"
_ANYWHERE = rf"{_NAME} ?\.\.\.+ ?[^ .]|{_CLASS}{_WORD}+=|{_COMMAND}|{_COMPILES}"
_LOGGER = r"(?:.{0,160}\]:? )?"
_OF_REPR = rf"^{_LOGGER}(?: *{_NAME}=[^ ]| {{8,}}[^ ]).*(?:[,(\[{{)\]}}])$|^{_LOGGER}\)+$|{_CLASS} *$"
_OF_PAIRS = rf"(?:^|[ \]|])[ {{-]*[\"']?{_NAME}[\"']?:(?: .{{0,300}})?$"
_NAMED_DICT = (
    r"(?i)(?:args?|arguments|conf|configs?|configuration|params|hyperparameters|settings)[^a-z{][^{]{0,20}\{.*\} *$"
)
_RECORD = r"^\{ ?\".*\{.*\} *$"
_EARLY = rf"{_OF_REPR}|{_OF_PAIRS}|{_NAMED_DICT}|{_RECORD}"

_LEAST_PAIRS = 8
"""Neighbouring `name: value` lines that are a configuration; fewer may be a report."""
_GAP = 3
"""Lines that may lie between those of a block: of other ranks."""
_RANKS_GAP = 256
"""A launcher prints the command of each rank: lines of one text, numbers aside, so near to one another."""
_DIGITS = re.compile(r"[0-9]+")
_WIDTH = 24
"""Name and dots of a table are at least so wide (DeepSpeed's 29, Megatron's 48); `Loading ...` is no argument."""
_METRICS = re.compile(
    r"(?i)(?:.*[_.-])?(?:loss|step|iter(?:ation)?|epoch|elapsed|eta|throughput|mfu|tokens_per_sec\w*)"
)

_TABLE_LINE = re.compile(rf"^(?:[^\[\]]{{0,40}}\[[^\]]*\]\s*)*\s*({_NAME}) ?(\.{{3,}}) ?([^\s.:].*)$")
_ORIGIN = re.compile(r"(?:\.{2,}|(?<=[\])}0-9]))(?:default|updated)$")
"""What GPT-NeoX puts behind a value (megatron/neox_arguments/arguments.py `print`)."""
_REPR_BEGIN = re.compile(rf"\b{_CLASS}")
_IS_CODE = re.compile(r"(?:[\w\]] = |return |def |class |raise |\w\()\s*(?:\w+\.)*$")
"""What stands before a call in source code, which some trainers print."""
_PREFIX = re.compile(_LOGGER)
_PAIR = re.compile(rf"^([\s{{-]*)[\"']?({_NAME})[\"']?:(?:\s(.*?))?,?\s*$")
_IS_COMMAND = re.compile(_COMMAND)
_IS_COMPILING = re.compile(_COMPILES)
_IS_DICT = re.compile(_NAMED_DICT)
_IS_RECORD = re.compile(_RECORD)


def lines_of(block: pl.DataFrame) -> pl.DataFrame:
    """Lines of a block (`source`, `line_no`, `text`, `template`) that may hold arguments, as they are."""
    templates = LineTemplates.of(block)
    found = templates.matching(_ANYWHERE)
    is_early = (block["line_no"] <= EARLY_LINES).to_numpy()
    if is_early.any():  # the patterns are asked of these alone
        found[is_early] |= LineTemplates.of(block.filter(is_early)).matching(_EARLY)
    return first_of_each(block.filter(found))


def first_of_each(rows: pl.DataFrame) -> pl.DataFrame:
    """The first MOST_LINES rows of each source."""
    if rows.height <= MOST_LINES:
        return rows
    return rows.filter(pl.int_range(pl.len()).over("source") < MOST_LINES)


def read_arguments(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS rows of ARGUMENT_LINES rows: each argument under its own name, as printed."""
    rows: list[tuple[int, int, str, str, str]] = []
    for (source, _), part in first_of_each(lines).group_by("source", "rank", maintain_order=True):
        texts = list(part.sort("line_no", maintain_order=True).select("line_no", "text").iter_rows())
        rows += [(int(str(source)), *found) for found in _of_file(texts)]
    frame = pl.DataFrame(rows, schema=SETTING_FACTS, orient="row")
    return frame.sort("source", "line_no", maintain_order=True)


_Found = tuple[int, str, str, str]
"""Line, name, value, and word of vocab.SETTING_SOURCE."""


def _of_file(lines: Sequence[tuple[int, str]]) -> Iterator[_Found]:
    """Arguments in the lines of one file and rank, in order."""
    at, last = 0, (0, "")
    while at < len(lines):
        line_no, text = lines[at]
        if (row := _TABLE_LINE.match(text)) and len(row[1]) + len(row[2]) >= _WIDTH:
            value = _ORIGIN.sub("", row[3].strip())
            if value not in ("{", "["):  # its lines follow
                yield line_no, row[1], value, "argument_dump"
        elif (begin := _REPR_BEGIN.search(text)) and not _IS_CODE.search(text[: begin.start()]):
            used, found = _repr_over_lines(lines[at:], begin.start())
            yield from found
            at += used
            continue
        elif _IS_DICT.search(text):
            yield from ((line_no, *pair, "argument_dump") for pair in json_values(text[text.index("{") :]))
        elif _IS_RECORD.match(text):
            pairs = list(json_values(text))
            if not any(_METRICS.fullmatch(part) for name, _ in pairs for part in name.split(".")):
                yield from ((line_no, *pair, "argument_dump") for pair in pairs)
        elif _IS_COMMAND.search(text):
            blind = _DIGITS.sub("0", text)
            if blind != last[1] or line_no - last[0] > _RANKS_GAP:
                yield from ((line_no, *pair, "command_line") for pair in command_values(text))
            last = (line_no, blind)
        elif _IS_COMPILING.search(text):
            yield line_no, "torch_compile", "True", "log_line"
        elif _PAIR.match(text):
            used, found = _pairs_over_lines(lines[at:])
            yield from found
            at += used
            continue
        at += 1


def _repr_over_lines(lines: Sequence[tuple[int, str]], begin: int) -> tuple[int, list[_Found]]:
    """(lines that an object's repr takes, its arguments); it ends where its brackets are closed, or with a gap."""
    parts = [lines[0][1][begin:]]
    depth = _depth(parts[0])
    used = 1
    while depth > 0 and used < len(lines) and lines[used][0] - lines[used - 1][0] <= _GAP:
        parts.append(_PREFIX.sub("", lines[used][1], count=1))
        depth += _depth(parts[-1])
        used += 1
    found = [(line, name, value, "argument_dump") for line, name, value in repr_values(parts, lines)]
    return used, found


def _depth(text: str) -> int:
    bare = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "", text)
    return sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))


def _pairs_over_lines(lines: Sequence[tuple[int, str]]) -> tuple[int, list[_Found]]:
    """(lines of a block of `name: value`, its arguments with dotted paths); none of a short block or of metrics."""
    found: list[_Found] = []
    path: list[tuple[int, str]] = []
    used = 0
    for line_no, text in lines:
        pair = _PAIR.match(text)
        if pair is None or (used and line_no - lines[used - 1][0] > _GAP):
            break
        used += 1
        indent, name, value = len(pair[1]), pair[2], (pair[3] or "").strip()
        path = [(width, parent) for width, parent in path if width < indent]
        if value in ("", "{", "["):
            path.append((indent, name))
            continue
        found.append((line_no, ".".join([*(parent for _, parent in path), name]), _unquoted(value), "argument_dump"))
    names = {name for _, name, _, _ in found}
    # The name of a host or a level before each line, or figures of steps: neither is a configuration.
    is_report = 2 * len(names) < len(found) or any(
        _METRICS.fullmatch(name) and value[:1].isdigit() for _, name, value, _ in found
    )
    return max(used, 1), [] if len(names) < _LEAST_PAIRS or is_report else found


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
