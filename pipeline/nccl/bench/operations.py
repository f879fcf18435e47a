"""The operations that nccl-tests measures (src/*.cu), and how files are named after them."""

from __future__ import annotations

import re

# Longer names first: reduce_scatter is no reduce.
NAMES = (
    ("ReduceScatter", r"reduce[_-]?scatter"),
    ("AllReduce", r"all[_-]?reduce"),
    ("AllGather", r"all[_-]?gather"),
    ("AlltoAllv", r"all[_-]?to[_-]?all[_-]?v"),
    ("AlltoAll", r"all[_-]?(?:to|2)[_-]?all"),
    ("SendRecv", r"send[_-]?recv"),
    ("Broadcast", r"broadcast|bcast"),
    ("Hypercube", "hypercube"),
    ("Scatter", "scatter"),
    ("Gather", "gather"),
    ("Reduce", "reduce"),
)
NAME = re.compile("|".join(f"(?P<o{place}>{pattern})" for place, (_, pattern) in enumerate(NAMES)), re.IGNORECASE)
OPERATIONS = tuple(sorted(name for name, _ in NAMES))
