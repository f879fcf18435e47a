"""Names with values in the lines of a log, whatever the form: arguments, YAML, JSON, dumps, tables, sentences.

A name is any text in front of a separator; whether it means anything is decided by `synonyms`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import polars as pl

from sweepscope.pipeline.logs.inference.sentences import UNITS, sentences_of
from sweepscope.pipeline.logs.inference.setting_values import SIZE, value_of
from sweepscope.pipeline.logs.synonyms import (
    AMBIGUOUS_BATCH,
    EVALUATION,
    FLAGS,
    NOT_OURS,
    PLANNED_EPOCHS,
    setting_of,
    words,
)

_MOST_CHARS = 16_384
_MOST_KEPT_CHARS = 1_000
"""Of lines whose values are kept, as each question about a log goes through the same lines again."""
_MOST_WORDS = 6
_MOST_CARD_CHARS = 40
_QUOTES = ("'", '"')

_GROUPED = r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?(?:[kKMBGT]\b)?"
"""Digits in groups of three, as of `1,313.72M`: such commas part no values."""

# `name = value`, `name: value`, `"name": value`, `name ... value`, `| name | value |`, `name -> value`, columns.
_PAIR = re.compile(
    r"""(?<![\w./-])(?P<name>-{0,2}[A-Za-z][\w./-]{0,79}"""
    r"""(?:[ ](?:[A-Za-z0-9(](?:[\w./()%,-]{0,79}[\w)%,])?|&)){0,9})["']?"""
    r"""(?P<form>\s*(?:=>|->|:=|=|:)\s*|\s*\.{2,}\s*|\s*[|│┃]\s*|\s{2,}|\t+)"""
    rf"""(?P<open>["'\[]{{0,2}})(?P<value>{_GROUPED}|[^\s,;(){{}}\[\]|│┃"']+)"""
)
# In Chinese, whose words are not parted: `最大序列长度: 2048`.
_CHINESE_PAIR = re.compile(
    r"(?:^|[\s,，;；|\-])(?P<name>[一-鿿][一-鿿A-Za-z ]{1,15}?)(?P<form>\s*[:：=＝]\s*)(?P<open>[\"']?)"
    rf"(?P<value>{_GROUPED}|[A-Za-z0-9./][^\s,;，；。(){{}}\[\]（）|\"']*)"
)
# A name that is a value itself: `"key": "global_batch_size", "value": 1024`.
_RECORD = re.compile(
    r"""["'](?:key|name|metric|tag)["']\s*:\s*["'](?P<name>[A-Za-z][\w./-]{0,79})["']"""
    r"""(?P<form>.{0,40}?["']value["']\s*:\s*)(?P<open>["']?)(?P<value>[^\s,;(){}\[\]"']+)"""
)
_OPTION = re.compile(
    r"(?:^|\s)--?(?P<name>[A-Za-z][\w.-]{0,79})(?P<form>[= ]|\s+)(?P<open>[\"']?)(?P<value>[^\s\"'-][^\s\"']*)"
)
# A name of several words with only its value behind it, between commas: `NVIDIA H100, world size 16, seq len 2048`.
_CLAUSE = re.compile(
    r"(?:^|[,;|(\[]\s*|:\s+)(?P<name>[A-Za-z][\w-]*(?: [A-Za-z][\w-]*){1,4})(?P<form> )(?P<open>)"
    r"(?P<value>\d{1,3}(?:,\d{3})+|\d+)(?: (?:seqs?|sequences|samples))?(?=\s*(?:[;|()\]]|,(?!\d)|$))"
)
# The same with names of one word: `layers 32, hidden 4096, heads 32`. One alone may be anything.
_SHORT_CLAUSE = re.compile(
    r"(?:^|[,;|(\[]\s*|:\s+)(?P<name>[A-Za-z][\w-]*)(?P<form> )(?P<open>)"
    r"(?P<value>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?[MBT]|\d+)(?=\s*(?:[;|()\]]|,(?!\d)|$))"
)
_LISTED = frozenset(
    (
        *("tp", "pp", "cp", "ep", "dp", "mbs", "gbs", "gas", "seq_len", "num_layers", "hidden_size", "num_heads"),
        *("num_kv_heads", "ffn_hidden_size", "vocab_size", "num_experts", "experts_per_token", "num_gpus", "params"),
    )
)
"""Columns that short clauses state; of the others, names of one word are words of any sentence."""
_FEWEST = 2
"""Clauses of a line that support each other, one of which at least is short."""
_SUPPORTING = frozenset(("accelerator", "model", "params"))
"""Columns of sentences that support a short clause, too: `llama3-8b (8.03B), seq 4096`."""
# Dimensions of a mesh, by one word each: `data=8 tensor=4 pipeline=2`. One alone may be anything.
_FORMS = ((_RECORD, "words"), (_OPTION, "option"), (_PAIR, ""), (_CHINESE_PAIR, "words"), (_CLAUSE, "words"))
DIMENSION = re.compile("data|fsdp|tensor|model|pipe(?:line)?|stage|context|sequence|expert")
"""Names of the dimensions of a mesh."""
_MESH = re.compile(
    rf"(?<![\w./-])(?P<name>{DIMENSION.pattern})(?P<form>[\"']?\s?[=:x×]\s?)"
    r"(?P<value>\d{1,6})(?![\w.])"
)
_MESH_COLUMNS = {"data": "dp", "tensor": "tp", "pipe": "pp", "pipeline": "pp", "context": "cp", "expert": "ep"}
_NEUTRAL = re.compile(
    r"(?:(?:using|use|the|an?|models?|training|train|config|cfg|args?|hparams|set|settings?|with|number|of|num|total|"
    r"global|actual|current|our|is|has|and|for|at|job|run|trainer|my|transformer|gpt|llama|decoder|network|net|distributed|"
    r"dist|ddp|data|dataset|mesh|parallel|parallelism|configured|initialized|default|selected|loaded|effective|value|"
    r"param(?:eter)?s?|option|arguments|hyperparameters|pretrain|pretraining|finetune|torch|pytorch|host|"
    r"calculated|computed|resulting|user|provided|specified|requested)(?: |$))*"
)
"""Words in front of a name that do not change what it means."""
_VALUE = re.compile(r"(?:^|\s)[A-Za-z-]*\d\S*\s+$")
"""Text whose last word has digits: a value, or the number of something."""
_SCRIPT = re.compile(r"(?:^|\s)\S+\.(?:py|sh)\s+$")
"""Text that ends with the script of a command, behind which its options begin: `pretrain.py model=llama3-8b`."""
_OF_PART = re.compile(
    r"(?i)(?:^|[\W_])(?:layers?|blocks?|stages?|groups?|buckets?|heads?|levels?|phases?|tasks?|scales?|conv)\b"
)
"""Words of a part of a model or a training, by whose number the part is called."""
_DUMPED = re.compile(r"(?:(?:namespace|ordereddict|dict|opts?|options|kwargs|hyperparams|flags|dims|sizes) ?)+")
"""What a dump of all arguments is called, besides neutral words."""
_OWNER = re.compile(r"(?P<name>[A-Za-z][\w.-]*)[\"']?\s*(?:=>|->|:=|=|:|\.{2,})?\s*$")
_MOST_DOUBT = 1
"""Of values of something that a line names otherwise: `aio_config: {'block_size': ..}` is no sequence length."""
_SPECIAL = (("batch", AMBIGUOUS_BATCH), ("epochs", PLANNED_EPOCHS))
"""What a name means that is no column's alone."""
_PER = re.compile(r"(?:[A-Za-z]\s*/\s+|\bper\s+)$")
"""In front of a name that something else is divided by: `Tokens / micro-batch: 512`."""
_FACTOR = re.compile(r"[x×*] ?\d[\d,]* $")
"""In front of what a factor counts; the sign behind it is that of the product: `batch 4 x 4 gpus = 16 sequences`."""
_WITH_SYMBOL = 2
"""Words of a name at least, for one letter behind them to be no part of it."""
_NAME = re.compile(r"[A-Za-z][\w./-]*")
_OF_TRAINING = re.compile(r"^train(?:ing)?[_/.-]")
_TRAINABLE = re.compile("(?i)trainable")
_BESIDE = 20
_ADAPTED = (
    r"(?i)\b(?:q?lora|dora|peft|adapters?|frozen)\b|\blora[_ ]?(?:r|rank|alpha)\W{1,4}[1-9]|"
    r"use_q?lora\W{1,4}(?:true|1)|冻结"
)
"""Found where a part of a model is trained only."""
_FRACTION = r"(?:^|[^A-Za-z0-9])(?:{})[\"']?\s?[:=]\s?[\"']?[0-9]+\.[0-9]*[1-9]0*(?:[^0-9A-Za-z]|$)"
"""A name with a fraction of one: `params: 6.70B` is a whole number."""
_LIST = re.compile(r"\s*,\s*[\d\"']")


@dataclass(frozen=True)
class Stated:
    """One value that a line states.

    Attributes:
        column: of `runs`, "batch" for one that may be a process's or the whole job's, "epochs" for planned ones.
        value: in the column's own terms, as text.
        sure: how well the name fits, 0 best.
        name: as printed.
        form: "option", "sentence", "word" for names of one word, "words" for longer ones.
        separator: between name and value.
        printed: the value as printed.
        line_no, text: the line; `begin` and `end` are the value's characters in it, `head` those of the name.
    """

    column: str
    value: str
    sure: int
    name: str
    form: str
    separator: str
    printed: str
    line_no: int
    text: str
    head: int
    begin: int
    end: int


def stated(lines: Iterable[tuple[int, str]]) -> Iterator[Stated]:
    """Every value of `runs` that the lines state."""
    for line_no, text in lines:
        if len(text) <= _MOST_CHARS:
            found = _kept(text) if len(text) <= _MOST_KEPT_CHARS else _in_line(text)
            yield from (replace(one, line_no=line_no) for one in found)


def without_measures(found: Sequence[Stated], text: pl.Series) -> list[Stated]:
    """Those of `found` that are settings: a whole number that `text` prints with a fraction elsewhere is a measure.

    fairseq's `"train_bsz": "318"` is the mean batch of an epoch, as its `"valid_bsz": "39.7"` shows.
    """
    names = {one.name: _OF_TRAINING.sub("", one.name) for one in found if one.value.isdigit()}
    bare = sorted(name for name in {*names.values()} if _NAME.fullmatch(name))
    if not bare:
        return list(found)
    near = text.filter(text.str.contains(_FRACTION.format("|".join(map(re.escape, bare)))))
    measures = {
        name for name in bare if not near.is_empty() and near.str.contains(_FRACTION.format(re.escape(name))).any()
    }
    return [one for one in found if names.get(one.name) not in measures]


def without_trained_part(found: Sequence[Stated], text: pl.Series) -> list[Stated]:
    """Those of `found` that are settings: trainable parameters are a part of the model's where `text` has adapters.

    As of `Trainable parameters: 11,796,480` below `LoRA rank: 8`. Where nothing is frozen, they are the model's.
    """
    trained = {one for one in found if one.column == "params" and _TRAINABLE.search(_around(one))}
    return (
        [one for one in found if one not in trained] if trained and text.str.contains(_ADAPTED).any() else list(found)
    )


def _around(one: Stated) -> str:
    """A statement's own words: its name, or, of a sentence, those beside the number."""
    if one.name:
        return words(one.name)
    # `Trainable parameters: 11,796,480 (0.77% of 1,533,189,120)` states all of them.
    is_whole = "%" in one.text[one.head : one.begin]
    return "" if is_whole else one.text[max(one.head - _BESIDE, 0) : one.end + _BESIDE]


@lru_cache(maxsize=8_192)
def _kept(text: str) -> tuple[Stated, ...]:
    return tuple(_in_line(text))


def _in_line(text: str) -> Iterator[Stated]:
    """What a line states, as of line 0."""
    taken: set[int] = set()
    clauses: set[str] = set()
    for pattern, form in _FORMS:
        position = 0
        while hit := pattern.search(text, position):
            found = _of_pair(text, hit, form) if hit.start("value") not in taken else None
            # What looks like the value of a heading may be a name: `parallelism: tp=2`.
            position = hit.end() if found else hit.start("value")
            if found:
                taken.add(hit.start("value"))
                clauses |= {found.column} if found.separator == " " else set()
                yield found
    listed = [
        (hit, found)
        for hit in _SHORT_CLAUSE.finditer(text)
        if hit.start("value") not in taken
        and (found := _of_pair(text, hit, "words")) is not None
        and found.column in _LISTED
    ]
    sentences = list(_sentences(text))
    supports = {one.column for one in sentences} & _SUPPORTING
    if listed and len(clauses | supports | {found.column for _, found in listed}) >= _FEWEST:
        for hit, found in listed:
            taken.add(hit.start("value"))
            yield found
    dimensions = [hit for hit in _MESH.finditer(text) if hit.start("value") not in taken]
    if len({hit["name"] for hit in dimensions}) > 1:
        columns = _columns_of_mesh({hit["name"]: hit["value"] for hit in dimensions})
        for hit in dimensions:
            column = columns.get(hit["name"])
            if column and value_of(column, hit["value"]):
                taken.add(hit.start("value"))
                where = 0, text, hit.start("name"), *hit.span("value")
                yield Stated(column, hit["value"], 1, hit["name"], "word", hit["form"], hit["value"], *where)
    yield from (one for one in sentences if one.begin not in taken)


def _sentences(text: str) -> Iterator[Stated]:
    """What a line states in words."""
    for column, pattern in sentences_of(text):
        for hit in pattern.finditer(text):
            printed, begin = hit["value"].rstrip(), hit.start("value")
            magnitude = hit.groupdict().get("magnitude")
            value = value_of(column, printed + UNITS[magnitude.lower()][0] if magnitude else printed)
            if value is not None:
                end = begin + len(printed)
                yield Stated(column, value, 1, "", "sentence", "", printed, 0, text, hit.start(), begin, end)


def _columns_of_mesh(sizes: Mapping[str, str]) -> Mapping[str, str]:
    """The column of each dimension of a mesh. JAX's `data` and `fsdp` are both data parallel, over copies and shards of
    the states."""
    columns = dict(_MESH_COLUMNS)
    if {"data", "model"} <= sizes.keys() and "tensor" not in sizes:
        columns["model"] = "tp"
    if sizes.get("fsdp", "1") == "1":
        return columns
    is_one = sizes.get("data", "1") == "1"
    return columns | {"data": "dp_replicate", "fsdp": "dp" if is_one else "dp_shard"}


def _of_pair(text: str, hit: re.Match[str], form: str) -> Stated | None:
    if hit["open"][:1] == "[" and _LIST.match(text, hit.end("value")):
        return None  # a list of several
    if _PER.search(text, 0, hit.start("name")):
        return None
    name = hit["name"]
    for position in _starts(name):
        if _FACTOR.search(text, 0, hit.start("name") + position):
            continue
        part = name[position:].lstrip("-")
        *sections, last = re.split(r"[./]", part) if re.fullmatch(r"[\w./-]+", part) else [part]
        is_plain = not position or _is_neutral(name[:position]) or _ends_value(name[:position], hit["form"])
        if NOT_OURS.search(words(" ".join(sections))) or not is_plain:
            continue
        named = _column(words(last), hit["value"], is_whole=position == 0 or name[position - 1] == "(")
        if named is None:
            continue
        column, sure, value = named
        owner = _owner(text[: hit.start("name") + position])
        if NOT_OURS.search(owner):
            continue
        if not (_NEUTRAL.fullmatch(owner) or _DUMPED.fullmatch(owner)):
            sure += 1
            if sure > _MOST_DOUBT:
                continue
        is_word = re.fullmatch(r"[\w./-]+", part) is not None
        head = hit.start("name") + position + len(name[position:]) - len(part)
        begin, end = hit.span("value")
        if is_path := column == "model" and text[begin] == "/":  # its last part is the value
            begin = text.rindex(value, begin, end)
        if column == "accelerator" and (quote := hit["open"][-1:]) in _QUOTES:  # `gpu='H100 SXM'`
            closing = text.find(quote, end, end + _MOST_CARD_CHARS)
            end = end if closing < 0 else closing
            value = text[begin:end]
        form = form or ("word" if is_word and not is_path else "words")
        return Stated(column, value, sure, part, form, hit["form"], text[begin:end], 0, text, head, begin, end)
    return None


def _owner(before: str) -> str:
    """The words in front of the innermost bracket that is open behind a text; "" where there are none.

    >>> _owner("aio_config .... {'queue_depth': 8, "), _owner("LlamaConfig(a=(1, 2), "), _owner("(batch) ")
    ('aio config', 'llama config', '')
    """
    depth = 0
    for position in range(len(before) - 1, -1, -1):
        if before[position] in ")}":
            depth += 1
        elif before[position] in "({":
            depth -= 1
            if depth < 0:
                owner = _OWNER.search(before[:position])
                return words(owner["name"]) if owner else ""
    return ""


def _starts(name: str) -> list[int]:
    """Where a name begins, each of its last words, and what stands in a bracket: `None (DeviceInfo(world_size`."""
    return [0, *(hit.end() for hit in re.finditer(r"\s+|(?<=\w)\((?=[A-Za-z])", name))][-_MOST_WORDS:]


def _is_neutral(before: str) -> bool:
    """Whether words in front of a name leave its meaning: it is what follows a comma, or words like "using"."""
    return bool(re.search(r"[,(]\s*$", before)) or _NEUTRAL.fullmatch(words(before)) is not None


def _ends_value(before: str, form: str) -> bool:
    """Whether words in front of a name are a value of their own, as its digits show: `NVIDIA H100 80GB HBM3 tp=4`,
    or a command's script.

    >>> _ends_value("NVIDIA H100 80GB HBM3 ", "="), _ends_value("layer 3 ", "="), _ends_value("vision tower ", "=")
    (True, False, False)
    >>> _ends_value("pretrain.py ", "=")
    True
    """
    if form.strip() not in ("=", ":"):
        return False
    if _SCRIPT.search(before):
        return True
    is_value = _VALUE.search(before) is not None
    return is_value and not _OF_PART.search(before) and not NOT_OURS.search(words(before))


def _column(name: str, printed: str, *, is_whole: bool) -> tuple[str, int, str] | None:
    """Column, sureness and value of a printed name; None where it means nothing, or its value is none of the column.

    >>> _column("model size", "8b", is_whole=True), _column("model size", "4096", is_whole=True)
    (('params', 0, '8000000000'), ('hidden_size', 0, '4096'))
    """
    if flag := FLAGS.get(name):
        column, values = flag
        value = values.get(printed.lower())
        return (column, 0, value) if value else None
    found = None
    parts = name.split()
    if len(parts) > _WITH_SYMBOL and len(parts[-1]) == 1:
        parts = parts[:-1]  # the letter by which a formula calls it: `micro batch size B`
    for start in range(min(len(parts), _MOST_WORDS)):
        if start and not _NEUTRAL.fullmatch(" ".join(parts[:start])):
            break
        rest = " ".join(parts[start:])
        hit = next(((column, 0) for column, form in _SPECIAL if re.fullmatch(form, rest)), None) or setting_of(rest)
        if hit:
            found = hit[0], hit[1] + (start > 0)
            break
    if found is None or EVALUATION.search(name):
        return None
    column = "params" if found[0] in ("model", "hidden_size") and SIZE.fullmatch(printed) else found[0]
    value = value_of(column, printed)
    return None if value is None else (column, found[1] + (not is_whole), value)
