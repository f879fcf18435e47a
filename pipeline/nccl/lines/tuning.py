"""Lines of NCCL_DEBUG_SUBSYS=TUNING (src/enqueue.cc): which algorithm and protocol NCCL chose for a size.

AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..7}    (2.24 on; before, numbers and a time)
"""

from __future__ import annotations

import re

import numpy as np

from sweepscope.pipeline.nccl.facts import Notes
from sweepscope.pipeline.nccl.lines.distinct_lines import Lines
from sweepscope.pipeline.nccl.lines.messages import Message

CHOICE = " Bytes -> Algo "
_TUNING = re.compile(
    r"(?:(?P<op>[A-Z]\w+): )?(?P<size>\d{1,18}) Bytes -> Algo (?P<algo>\w+) proto (?P<proto>\w+)"
    r"(?: (?:time (?P<time>[\d.]+)|channel\{Lo\.\.Hi\}=\{(?P<channels>\d+\.\.\d+)\}))?"
)
# Numbers until 2.23 (src/include/nccl_tuner.h); CollNet was one algorithm, number 2, until 2.13, which printed none.
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")


def read_choice(message: Message, line_no: int, notes: Notes) -> bool:
    """One line."""
    return not message.is_cut and count_choice(message.text, line_no, notes, lines=1)


def count_choice(text: str, line_no: int, notes: Notes, *, lines: int) -> bool:
    """Lines with the same text, of which the first has the number."""
    found = _TUNING.match(text)
    if found is None:
        return False
    algorithm, protocol = _word(found["algo"], _ALGORITHMS), _word(found["proto"], _PROTOCOLS)
    key = (found["op"], int(found["size"]), algorithm, protocol, found["channels"])
    notes.count("tuning", line_no, *key, lines=lines)
    return True


def read_choices(lines: Lines, notes: Notes) -> np.ndarray:
    """Whole columns of such lines; says which of their texts tell nothing."""
    is_mute = np.zeros(len(lines.texts), dtype=bool)
    for source, told, line_no, count in lines.alike().iter_rows():
        is_mute[told] = not count_choice(lines.texts[told], line_no, notes.at(source), lines=count)
    return is_mute


def _word(text: str, names: tuple[str, ...]) -> str:
    """A choice that old versions print as a number."""
    return names[int(text)] if text.isdecimal() and int(text) < len(names) else text
