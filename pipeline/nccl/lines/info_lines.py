"""INFO messages of a block as columns. Texts and prefixes repeat: each distinct one is looked at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.lines.distinct import coded_rows

_PREFIX = {"source": pl.Int64, "host": pl.String, "pid": pl.Int64, "tid": pl.Int64, "is_first": pl.Boolean}
_TEXT = {"text": pl.String, "is_cut": pl.Boolean}
_POSITION = {"position": pl.Int64, "line_no": pl.Int64}
ROWS = pl.Schema({**_POSITION, "prefix_id": pl.UInt32, "text_id": pl.UInt32})
MESSAGES = pl.Schema({**_POSITION, **_PREFIX, **_TEXT})
"""One message: `position` of its line in the block; `is_first`, `is_cut` as in `messages.Message`."""


@dataclass(frozen=True)
class InfoLines:
    """INFO messages.

    Attributes:
        rows: as ROWS, by `position`; `text_id` and `prefix_id` are indices of `texts` and `prefixes`. Lines that
            belong to a communicator have their `span` as well: lines of one span are of one (see `spans`).
        texts: what follows NCCL INFO, as a rule each once.
        is_cut: of each text, whether another write begins in its line, so that its end may be missing.
        prefixes: `source`, `host`, `pid`, `tid`, `is_first`.
    """

    rows: pl.DataFrame
    texts: pl.Series
    is_cut: np.ndarray
    prefixes: pl.DataFrame

    @classmethod
    def of_messages(cls, messages: Iterable[tuple[object, ...]]) -> InfoLines:
        """Messages given as MESSAGES."""
        frame = pl.DataFrame(list(messages), schema=MESSAGES, orient="row")
        prefixes, prefix_id = coded_rows(frame.select(_PREFIX.keys()))
        texts, text_id = coded_rows(frame.select(_TEXT.keys()))
        rows = frame.select(*_POSITION, prefix_id=pl.Series(prefix_id), text_id=pl.Series(text_id)).cast(ROWS)
        return cls(rows, texts["text"], texts["is_cut"].to_numpy(), prefixes)

    @classmethod
    def joined(cls, parts: Sequence[InfoLines]) -> InfoLines:
        """All messages of the same block, whose texts and prefixes may then occur more than once."""
        filled = [part for part in parts if not part.rows.is_empty()]
        if len(filled) < 2:
            return (filled or parts)[0]
        rows, num_prefixes, num_texts = [], 0, 0
        for part in filled:
            rows.append(part.rows.with_columns(pl.col("prefix_id") + num_prefixes, pl.col("text_id") + num_texts))
            num_prefixes, num_texts = num_prefixes + len(part.prefixes), num_texts + len(part.texts)
        return cls(
            pl.concat(rows).sort("position", maintain_order=True),
            pl.concat([part.texts for part in filled]),
            np.concatenate([part.is_cut for part in filled]),
            pl.concat([part.prefixes.select(_PREFIX.keys()) for part in filled]),
        )

    def with_prefix(self, rows: pl.DataFrame, *names: str) -> pl.DataFrame:
        """`rows` with these columns of the prefix that `prefix_id` names."""
        return rows.with_columns(self.prefixes[rows["prefix_id"]].select(names).get_columns())

    def with_texts(self) -> pl.DataFrame:
        """The rows with their `text` and the columns of their prefixes."""
        rows = self.with_prefix(self.rows, *self.prefixes.columns)
        return rows.with_columns(self.texts.gather(rows["text_id"]).alias("text"))

    def counted(self) -> pl.DataFrame:
        """`source`, `text_id`, the first `line_no` and the number of `lines` with the same text in the same file."""
        rows = self.rows.select("text_id", "line_no", source=self.prefixes["source"].gather(self.rows["prefix_id"]))
        return rows.group_by("source", "text_id").agg(pl.col("line_no").min(), lines=pl.len())

    def of_texts(self, chosen: np.ndarray) -> InfoLines:
        """The messages whose texts are `chosen` (a mask); other texts are dropped."""
        if chosen.all():
            return self
        text_id = self.rows["text_id"].to_numpy()
        rows = self.rows.filter(chosen[text_id])
        renumbered = (np.cumsum(chosen) - 1)[rows["text_id"].to_numpy()]
        return InfoLines(
            rows.with_columns(text_id=pl.Series(renumbered, dtype=pl.UInt32)),
            self.texts.filter(pl.Series(chosen)),
            self.is_cut[chosen],
            self.prefixes,
        )
