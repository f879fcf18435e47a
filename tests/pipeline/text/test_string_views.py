"""Parts that are cut out of texts by place are the slices there."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.text.string_views import PAD, cut

WORDS = st.text("ab1é█", max_size=40).map(lambda text: text.encode())


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=20), st.booleans())
def test_parts_are_slices(rows: list[tuple[bytes, bytes, bytes]], has_none: bool) -> None:
    texts = [b"".join(row) for row in rows]
    data = np.frombuffer(b"0" * PAD + b"".join(texts) + b"0" * PAD, dtype=np.uint8)
    starts = PAD + np.cumsum([0, *map(len, texts)])[:-1]
    edges = [np.cumsum([0, *map(len, row)]).tolist() for row in rows]
    places = np.array([[(at[0], at[1]), (at[1], at[3]), (-1, -1)] for at in edges], dtype=np.int32).reshape(-1, 3, 2)
    kinds = np.arange(len(rows))
    if has_none:
        places = np.concatenate([places, np.full((1, 3, 2), -1, dtype=np.int32)])
        kinds = np.where(kinds % 2, kinds, len(rows))
    first, rest, nothing = (column.to_list() for column in cut(data, starts, places, kinds))
    is_there = [not has_none or place % 2 for place in range(len(rows))]
    assert first == [row[0].decode() if there else None for row, there in zip(rows, is_there, strict=True)]
    assert rest == [(row[1] + row[2]).decode() if there else None for row, there in zip(rows, is_there, strict=True)]
    assert nothing == [None] * len(rows)
