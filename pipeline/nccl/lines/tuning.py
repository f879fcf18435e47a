"""Lines of NCCL_DEBUG_SUBSYS=TUNING (src/enqueue.cc): the algorithm and protocol that NCCL chose for a size.

AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..7}    (2.24 on; before, numbers and a time)
"""

from __future__ import annotations

import re

import numpy as np

from sweepscope.pipeline.nccl.facts import Notes
from sweepscope.pipeline.nccl.lines.info_lines import InfoLines

CHOICE = " Bytes -> Algo "
_TUNING = re.compile(
    r"(?:(?P<op>[A-Z]\w+): )?(?P<size>\d{1,18}) Bytes -> Algo (?P<algo>\w+) proto (?P<proto>\w+)"
    r"(?: (?:time (?P<time>[\d.]+)|channel\{Lo\.\.Hi\}=\{(?P<channels>\d+\.\.\d+)\}))?"
)
# Numbers until 2.23 (src/include/nccl_tuner.h); CollNet was one algorithm, number 2, until 2.13, which printed none.
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")


def read_choices(lines: InfoLines, notes: Notes) -> np.ndarray:
    """`tuning` facts; returns a mask of the texts that were understood."""
    is_read = np.zeros(len(lines.texts), dtype=bool)
    for source, text_id, line_no, count in lines.counted().iter_rows():
        if found := _TUNING.match(lines.texts[text_id]):
            algorithm, protocol = _word(found["algo"], _ALGORITHMS), _word(found["proto"], _PROTOCOLS)
            key = (found["op"], int(found["size"]), algorithm, protocol, found["channels"])
            notes.at(source).count("tuning", line_no, *key, lines=count)
            is_read[text_id] = True
    return is_read


def _word(text: str, names: tuple[str, ...]) -> str:
    """A choice that old versions print as a number."""
    return names[int(text)] if text.isdecimal() and int(text) < len(names) else text
