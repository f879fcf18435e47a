"""Values that a sentence states, and no name in front of a sign: `using 8 GPUs`, `12 layers`, `tokens / step: 32`."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAGNITUDES = {"million": ("M", "millions"), "百万": ("M", "millions"), "billion": ("B", "billions")}
"""Words behind a number: the suffix that means the same, and how a dialect file calls a number in front of it."""
UNITS = {"m": ("M", "millions"), "b": ("B", "billions")} | MAGNITUDES
"""The same of what stands in brackets behind the name of a number: `params (M): 124.4`."""

_CARD = (
    r"(?:(?:NVIDIA |AMD )?(?:Instinct )?(?:[ABHLV]\d{2,3}(?-i:S)?|GB\d{3}|MI\d{3}X?)(?=s?(?!\w))"
    r"(?:-(?:SXM\d?|PCIE?|\d{2,3}GB)| (?:SXM\d?|PCIE?|\d{2,3} ?GB)(?!\w)){0,2}|"
    r"(?:Cloud )?TPU[ -]?v\d[a-z]?(?!\w)|(?:Huawei )?Ascend[ -]?910\w{0,3}(?!\w))"
)
_CARDS = (
    r"(?i)^(?!.*\bnodes?\b).*?(?:\b(?:on|using|with)|\b(?:gpus?|hardware|accelerators?|devices?)(?:\(\))? ?[:=]) ?"
    r"{count}\s?[x×]\s?{card}"
)
"""How many cards of which kind: `on 8x A100-SXM4-80GB`; of a line that names nodes the number may be that of each."""
_CLAUSE_OF_CARDS = r"(?i)^(?!.*\bnodes?\b)(?:.*?[|,;(] ?)?{count}\s?[x×]\s?{card}s?(?=\s*(?:[|,;)]|$))"
"""A clause of its own: `tp 2 | 16 x H100-80GB | seq len 4096`."""
_CARDS_ON_ONE_NODE = r"(?i)(?<![\w.,-]){count}\s?[x×]\s?{card}s? on (?:1|one|a single) (?:node|host|machine)\b"
"""The number is that of all of them, as there is one node: `8x H100-80GB on 1 node`."""
_SOME_CARDS = r"(?i)^(?!.*\bnodes?\b).*?\b(?:on|using|with) {count} {card}s?(?: GPUs?\b|$|[ ,;.)])"
"""The same without a sign: `ran on 32 A100s`."""
_NODES_OF_CARDS = (
    r"(?i)(?<![\w.,-]){nodes}\s?(?:GPU |DGX |HGX |compute )?(?:nodes|hosts|machines|servers),? ?"
    r"(?:of|with|having|each with|x|×|\() ?{count}(?:\s?[x×]\s?|\s){card}"
)
"""Nodes with so many cards each: `2 nodes of 8x H100`, `4 nodes x 8 A100-80GB`, `2 nodes (8x MI300X)`."""
_CARDS_OF_NODES = r"(?i)(?<![\w.,-]){nodes}\s?[x×]\s?{count}(?:\s?[x×]\s?|\s){card}"
"""Nodes by cards without a word: `16 x 8 A100-80GB`, `4x8xH100`."""
_OF_RANKS = (
    r"(?<!local )(?<!local_)(?<!node )(?<!jax )\b(?:rank|process)\s*[:#=]?\s*\d+\s*"
    r"(?:/|\bof\b|\bout of\b)\s*(?P<value>\d+)\b(?!\.\d)"
)
_SIZED_NAME = r"[A-Za-z][\w.]*(?:-[\w.]+)*?-?\d{1,4}(?:\.\d+)?[bB](?:-[A-Za-z]\w*)*"
_SIZED_MODEL = r"(?<![\w./-]){name} \({size}B?(?: param\w*)?\)"
"""A model whose name has its size, with the exact one behind it: `llama3-8b (8.03B)`."""
_USED, _NODE, _NODES = (
    ("on ", "using ", "with "),
    ("node", "host", "machine"),
    ("nodes", "hosts", "machines", "servers"),
)
_LENGTH = r"(?:(?:sequence|context|seq|ctx)[ _-]?(?:length|len|window)|seqlen|ctx)"

_SENTENCES: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = (
    (
        "num_gpus",
        ("gpu", "device", "rank", "process", "accelerator"),
        re.compile(
            r"(?i)\b(?:using|on|with|across|over|launching|found|detected|of|world)\s+(?P<value>\d+)\s*x?\s*(?:[\w-]+\s){0,2}?(?:gpus?|devices|ranks|processes|accelerators)\b(?!\s*(?:each|per|/))"
        ),
    ),
    (
        "num_gpus",
        ("rank", "process"),
        re.compile(rf"(?i)^(?!.*\b(?:TPU|jax)\b).*?{_OF_RANKS}"),
    ),
    (
        "num_gpus",
        ("gpus", "devices", "ranks", "processes"),
        re.compile(
            rf"(?i){_CARD}[^,;|(]{{0,30}}[,;|(]\s*(?P<value>\d{{1,6}}) (?:gpus|devices|ranks|processes)\b"
            r"(?!\s*(?:each|per|/|on|in))"
        ),
    ),
    # On TPUs, JAX has one process for all chips of a host.
    ("num_nodes", ("process",), re.compile(rf"(?i)^(?=.*\bTPU\b).*?{_OF_RANKS}")),
    ("num_gpus", ("x", "×"), re.compile(_CARDS.format(count=r"(?P<value>\d{1,6})", card=_CARD))),
    ("accelerator", ("x", "×"), re.compile(_CARDS.format(count=r"\d{1,6}", card=f"(?P<value>{_CARD})"))),
    ("num_gpus", ("x", "×"), re.compile(_CLAUSE_OF_CARDS.format(count=r"(?P<value>\d{1,6})", card=_CARD))),
    ("accelerator", ("x", "×"), re.compile(_CLAUSE_OF_CARDS.format(count=r"\d{1,6}", card=f"(?P<value>{_CARD})"))),
    ("model", ("model ",), re.compile(rf"(?:^|[|,;(] ?)[Mm]odel (?P<value>{_SIZED_NAME})(?=\s*(?:[|,;)]|$))")),
    ("num_gpus", _NODE, re.compile(_CARDS_ON_ONE_NODE.format(count=r"(?P<value>\d{1,3})", card=_CARD))),
    ("accelerator", _NODE, re.compile(_CARDS_ON_ONE_NODE.format(count=r"\d{1,3}", card=f"(?P<value>{_CARD})"))),
    ("model", ("b)", "b "), re.compile(_SIZED_MODEL.format(name=f"(?P<value>{_SIZED_NAME})", size=r"\d+(?:\.\d+)?"))),
    ("params", ("b)", "b "), re.compile(_SIZED_MODEL.format(name=_SIZED_NAME, size=r"(?P<value>\d+(?:\.\d+)?B)"))),
    ("num_gpus", _USED, re.compile(_SOME_CARDS.format(count=r"(?P<value>[1-9]\d{0,5})", card=_CARD))),
    ("accelerator", _USED, re.compile(_SOME_CARDS.format(count=r"[1-9]\d{0,5}", card=f"(?P<value>{_CARD})"))),
    (
        "num_nodes",
        _NODES,
        re.compile(_NODES_OF_CARDS.format(nodes=r"(?P<value>\d{1,5})", count=r"\d{1,2}", card=_CARD)),
    ),
    (
        "gpus_per_node",
        _NODES,
        re.compile(_NODES_OF_CARDS.format(nodes=r"\d{1,5}", count=r"(?P<value>\d{1,2})", card=_CARD)),
    ),
    (
        "accelerator",
        _NODES,
        re.compile(_NODES_OF_CARDS.format(nodes=r"\d{1,5}", count=r"\d{1,2}", card=f"(?P<value>{_CARD})")),
    ),
    (
        "num_nodes",
        ("x", "×"),
        re.compile(_CARDS_OF_NODES.format(nodes=r"(?P<value>\d{1,5})", count=r"\d{1,2}", card=_CARD)),
    ),
    (
        "gpus_per_node",
        ("x", "×"),
        re.compile(_CARDS_OF_NODES.format(nodes=r"\d{1,5}", count=r"(?P<value>\d{1,2})", card=_CARD)),
    ),
    (
        "accelerator",
        ("x", "×"),
        re.compile(_CARDS_OF_NODES.format(nodes=r"\d{1,5}", count=r"\d{1,2}", card=f"(?P<value>{_CARD})")),
    ),
    (
        "accelerator",
        _NODES,
        re.compile(rf"(?i)\b(?:nodes|hosts|machines|servers) (?:of|with) (?P<value>{_CARD})s?(?![\w-])"),
    ),
    (
        "seq_len",
        ("length ", "len ", "window ", "seqlen ", "ctx "),
        re.compile(rf"(?i)\b{_LENGTH}(?: of)? (?P<value>\d{{1,3}},\d{{3}}|\d{{3,7}})(?![\w.,]\d|\w|\s?[<>])"),
    ),
    # What a batch comes to, of its factors: `Batch size: 1 × 32 = 32 (effective)`.
    (
        "gbs",
        ("batch",),
        re.compile(
            r"(?i)\bbatch(?:[ _]?size)?\W{1,4}\d+(?: ?[x×*] ?\d+){1,3} ?= ?"
            r"(?P<value>\d{1,6})\b(?![.,]\d|\s?(?:[kM]\s)?tok)"
        ),
    ),
    (
        "params",
        ("%",),
        re.compile(
            r"(?i)\btrainable param(?:eter)?s?\W{1,3}\d[\d,]*\s?\(\d{1,2}(?:\.\d+)?\s?% of (?:all |total )?"
            r"(?P<value>\d{1,3}(?:,\d{3})+|\d{5,})\b"
        ),
    ),
    (
        "seq_len",
        ("of length ",),
        re.compile(
            r"(?i)\b(?:sequences|samples|windows|chunks|blocks) of length (?P<value>\d{1,3},\d{3}|\d{2,7})\b(?!\.\d)"
        ),
    ),
    (
        "gbs",
        ("global batch",),
        re.compile(r"(?i)\bglobal batch(?: size)? of (?P<value>\d{1,6})\b(?!\.\d|[kKM]|\s?(?:[kKM]\s)?tok)"),
    ),
    # Chinese, with its measure words: `64 张 A100`, `32卡`; of `4机8卡` and `每台8卡` the number is that of each.
    (
        "num_gpus",
        ("张", "块", "卡"),
        re.compile(
            rf"(?i)(?<![\w.]|[机台点每])(?<![机台点每] )(?P<value>\d{{1,6}}) ?"
            rf"(?:[张块] ?(?:{_CARD}|GPU|NPU|加速卡|芯片|显卡|卡)|卡(?!数))"
        ),
    ),
    (
        "num_nodes",
        ("服务器", "机器", "节点"),
        re.compile(r"(?<![\w.])(?P<value>\d{1,5}) ?(?:台|个) ?(?:GPU ?)?(?:服务器|机器|节点)"),
    ),
    # Of srun: a task per card, unless one task per node starts the others.
    ("gpus_per_node", ("srun",), re.compile(r"\bsrun\b.*\s--ntasks-per-node[= ](?P<value>[2-9]|1\d)\b")),
    (
        "gbs_tokens",
        ("tok",),
        re.compile(
            r"(?i)\btok(?:en)?s\s*(?:/|\bper\b)\s*(?:(?:optimi[sz]er|global|train(?:ing)?|weight)\s)?"
            r"(?:step|batch|update|iter(?:ation)?)\s*[:=]\s*(?P<value>\d[\d,]*)(?![\d.])"
        ),
    ),
    (
        "num_nodes",
        ("node", "host", "machine"),
        re.compile(
            # Of torch's barriers the nodes are processes.
            r"(?i)^(?!.*\bbarrier\b).*?\b(?:using|on|with|across|over)\s+(?P<value>\d+)\s+"
            r"(?:(?:node|host|machine)\(s\)|(?:nodes|hosts|machines)\b)"
        ),
    ),
    (
        "params",
        ("param",),
        re.compile(
            r"(?i)(?<![\w.])(?P<value>\d[\d,]*\.?\d*\s?[KMBT]?)\s*(?:trainable\s|total\s|model\s|learnable\s)?param(?:eter)?s\b"
        ),
    ),
    (
        "params",
        ("param", "参数"),
        re.compile(
            rf"(?i)(?:\bparam(?:eter)?s?|参数量?)(?: (?:count|number|size))?\s?[:：=]?\s*"
            rf"(?P<value>\d[\d,]*\.?\d*)\s*(?P<magnitude>{'|'.join(MAGNITUDES)})"
        ),
    ),
    (
        "params",
        ("param", "model size"),
        re.compile(
            r"(?i)\b(?:param(?:eter)?s?|model size)(?: (?:count|number|size))?\s?[:=]\s*"
            r"(?P<value>\d[\d,]*\.?\d*\s(?-i:[MB]))\b"
        ),
    ),
    (
        "params",
        ("param", "model size"),
        re.compile(
            rf"(?i)\b(?:param(?:eter)?s?|model size) ?[(\[](?:in )?(?P<magnitude>{'|'.join(UNITS)})s?[)\]]\s?[:=]\s*"
            r"(?P<value>\d[\d,]*\.?\d*)(?![\w.,])"
        ),
    ),
    (
        "params",
        ("param", "参数"),
        re.compile(
            rf"(?i)(?<![\w.])(?P<value>\d[\d,]*\.?\d*)\s*(?P<magnitude>{'|'.join(MAGNITUDES)})\s*"
            r"(?:(?:trainable|total|model|learnable)\s)?(?:param(?:eter)?s?\b|参数)"
        ),
    ),
    (
        "active_params",
        ("activ",),
        re.compile(
            r"(?i)(?<![\w.])(?P<value>\d[\d,]*\.?\d*\s?[MBT])\s*(?:active|activated)\b(?!\s(?:experts|layers|tok))"
        ),
    ),
    (
        "num_layers",
        ("layers",),
        re.compile(r"(?i)\b(?P<value>\d+)\s+(?:transformer\s|decoder\s|hidden\s)?layers\b(?!\s?[=:]\s?\d)"),
    ),
    (
        "steps_planned",
        ("training",),
        re.compile(r"(?i)\btraining\s(?:\w+\s)?for\s(?P<value>\d[\d,]*)\s(?:steps|iterations|iters|updates)\b"),
    ),
    # What an epoch's number counts up to; steps only where epochs are what the log counts (`infer`).
    ("epochs", ("epoch",), re.compile(r"(?i)\bepoch\W{1,3}\d+\s?(?:/|of)\s?(?P<value>\d+)\b(?![.,]\d)")),
    ("num_heads", ("heads",), re.compile(r"(?i)\b(?P<value>\d+)\s+(?:attention\s)?heads\b(?!\s?[=:]\s?\d)")),
)
"""Column of `runs`, words in small letters of which any such line has one, and the expression whose group `value` is
what the sentence says, in units of `magnitude`."""


def sentences_of(text: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Columns and expressions of the sentences that a line may be, by its words: to search for all would take long."""
    small = text.lower()
    return ((column, pattern) for column, words, pattern in _SENTENCES if any(word in small for word in words))
