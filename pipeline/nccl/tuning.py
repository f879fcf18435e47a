"""Lines of NCCL_DEBUG_SUBSYS=TUNING (src/enqueue.cc): which algorithm and protocol NCCL chose for a size.

AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..7}    (2.24 on; before, numbers and a time)
"""

from __future__ import annotations

import re

import polars as pl

from pipeline.nccl.facts import Notes
from pipeline.nccl.messages import Message

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


def read_choices(rows: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """Whole columns of such lines (`source`, `line_no`, `text`); returns those that tell nothing."""
    alike = rows.group_by("source", "text").agg(pl.col("line_no").min(), lines=pl.len())
    strange = [
        text
        for source, text, line_no, lines in alike.iter_rows()
        if not count_choice(text, line_no, notes.at(source), lines=lines)
    ]
    return rows.filter(pl.col("text").is_in(strange))


def _word(text: str, names: tuple[str, ...]) -> str:
    """A choice that old versions print as a number."""
    return names[int(text)] if text.isdecimal() and int(text) < len(names) else text
