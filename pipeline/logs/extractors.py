"""Building blocks of dialects: settings, milestones and repeated steps, read from lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from types import MappingProxyType

import polars as pl

from sweepscope.pipeline.logs.dialect import LineFacts
from sweepscope.pipeline.logs.facts import EVENT_FACTS, PEAK_FACTS, SETTING_FACTS, Facts, conform
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.line_templates import matching, with_text
from sweepscope.pipeline.text.literals import holding
from sweepscope.pipeline.text.quantities import number
from sweepscope.pipeline.text.timestamps import timestamp


def once_per_text(settings: LineFacts) -> LineFacts:
    """`settings`, a function of `text` alone, called with each distinct text once.

    Every rank and every run of a sweep prints the same dump.
    """

    @wraps(settings)
    def of_lines(lines: pl.DataFrame) -> pl.DataFrame:
        texts = lines.select("text").unique(maintain_order=True)
        if texts.height * 2 > lines.height:
            return settings(lines)
        numbered = texts.with_columns(source=pl.lit(0, pl.Int64), line_no=pl.int_range(pl.len()))
        facts = settings(numbered).drop("source").join(numbered, on="line_no", maintain_order="left")
        rows = lines.select("source", "line_no", "text").join(
            facts.drop("source", "line_no"), on="text", maintain_order="left_right"
        )
        return conform(rows, SETTING_FACTS)

    return of_lines


def named_settings(lines: pl.DataFrame, pattern: str, names: Mapping[str, str], *, setting_source: str) -> pl.DataFrame:
    """SETTING_FACTS of lines like `name ... value`.

    Args:
        lines: `source`, `line_no`, `text`.
        pattern: has two groups, the framework's name and the value; it may match several times in a line unless it
            begins with `^`.
        names: the framework's names to columns of `runs`. Other names are left alone.
        setting_source: word of vocab.SETTING_SOURCE.
    """
    near = lines.filter(holding(names))
    if near.is_empty():
        return pl.DataFrame(schema=SETTING_FACTS)
    # Every rank and every run of a sweep prints the same dump: each distinct text is read once.
    texts = near.select("text").unique(maintain_order=True)
    text = pl.col("text")
    if pattern.startswith("^"):
        hits = texts.with_columns(name=text.str.extract(pattern, 1), value=text.str.extract(pattern, 2))
    else:
        each = texts.with_columns(hit=text.str.extract_all(pattern)).explode("hit")
        hits = each.with_columns(
            name=pl.col("hit").str.extract(pattern, 1), value=pl.col("hit").str.extract(pattern, 2)
        )
    known = hits.filter(pl.col("name").is_in(list(names)))
    rows = near.select("source", "line_no", "text").join(known, on="text", maintain_order="left_right")
    rows = rows.with_columns(
        name=pl.col("name").replace_strict(dict(names), default=None, return_dtype=pl.String),
        value=pl.col("value").str.strip_chars().str.strip_chars("'\""),
        setting_source=pl.lit(setting_source),
    )
    return conform(rows, SETTING_FACTS)


def matched_settings(lines: pl.DataFrame, patterns: Iterable[tuple[str, str]]) -> pl.DataFrame:
    """SETTING_FACTS of sentences: the first group of each (column of `runs`, pattern), as printed."""
    pairs = list(patterns)
    near = lines.filter(pl.col("text").str.contains("|".join(f"(?:{pattern})" for _, pattern in pairs)))
    if near.is_empty():
        return pl.DataFrame(schema=SETTING_FACTS)
    texts = near.select("text").unique(maintain_order=True)
    each = texts.with_columns(pl.col("text").str.extract(pattern).alias(str(n)) for n, (_, pattern) in enumerate(pairs))
    values = each.unpivot(index="text", variable_name="pair").drop_nulls("value")
    rows = near.select("source", "line_no", "text").join(values, on="text", maintain_order="left_right")
    names = {str(n): name for n, (name, _) in enumerate(pairs)}
    return conform(
        rows.with_columns(name=pl.col("pair").replace_strict(names), setting_source=pl.lit("log_line")), SETTING_FACTS
    )


def computed_settings(
    lines: pl.DataFrame, values: Mapping[str, pl.Expr], *, setting_source: str = "log_line"
) -> pl.DataFrame:
    """SETTING_FACTS of the lines in which an expression has a value; numbers are rounded to whole ones.

    Args:
        lines: `source`, `line_no` and what the expressions read.
        values: column of `runs`, or `arg:` name, to its value.
        setting_source: word of vocab.SETTING_SOURCE.
    """
    parts = []
    for name, value in values.items():
        rows = lines.select("source", "line_no", name=pl.lit(name), value=value).drop_nulls("value")
        if rows.schema["value"].is_float():
            rows = rows.with_columns(pl.col("value").round().cast(pl.Int64, strict=False))
        parts.append(conform(rows.with_columns(setting_source=pl.lit(setting_source)), SETTING_FACTS))
    return pl.concat(parts).drop_nulls("value")


def computed_peaks(lines: pl.DataFrame, values: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """PEAK_FACTS of the lines in which an expression has a value; `values` maps columns of `runs` to them."""
    return pl.concat(
        conform(lines.select("source", "line_no", name=pl.lit(name), value=value), PEAK_FACTS).drop_nulls("value")
        for name, value in values.items()
    )


def milestones(*, launch: str | None = None, training_end: str | None = None) -> LineFacts:
    """A function from lines to EVENT_FACTS of those that match either pattern: a run begins, or has ended well."""
    patterns = {"launch": launch, "training_end": training_end}
    wanted = [(kind, pattern) for kind, pattern in patterns.items() if pattern is not None]

    def events(lines: pl.DataFrame) -> pl.DataFrame:
        text = pl.col("text")
        found = pl.concat(
            lines.filter(text.str.contains(pattern)).with_columns(kind=pl.lit(kind)) for kind, pattern in wanted
        )
        ts = pl.coalesce(timestamp(text), timestamp(pl.col("prefix")))
        return conform(found.with_columns(ts=ts, text=text.str.strip_chars()), EVENT_FACTS)

    return events


def extract_numbers(
    lines: pl.DataFrame, numbers: Mapping[str, str], texts: Mapping[str, str] = MappingProxyType({})
) -> pl.DataFrame:
    """`lines` with a column per pattern, as of `extract_each`: Float64 those of `numbers`, text those of `texts`."""
    extracted = extract_each(lines, {**numbers, **texts})
    return extracted.with_columns(number(pl.col(name)) for name in numbers)


def last_of_each_step(facts: Facts) -> Facts:
    """The last of consecutive facts of one step, rank and launch: a bar moves before it shows its new values.

    One that is drawn again without anything new does not count, see `is_drawn_again`.
    """
    order = ["source", "line_no"]
    launches = facts.events.filter(pl.col("kind") == "launch").select(*order, launch="line_no").unique().sort(order)
    steps = facts.steps.sort(order, maintain_order=True)
    marked = steps.join_asof(launches, on="line_no", by="source", strategy="backward", check_sortedness=False)
    part = ["source", "rank", "launch"]
    marked = marked.filter(~is_drawn_again(part))
    following = pl.col("step").shift(-1).over(part)
    is_last = pl.col("step").is_null() | pl.col("step").ne_missing(following)
    return replace(facts, steps=marked.filter(is_last).drop("launch"))


def is_drawn_again(part: Sequence[str]) -> pl.Expr:
    """Whether a row of STEP_FACTS, in order, has the step, the loss and all else of the row before, but for its speed.

    A bar is drawn once more when it is closed (tqdm std.py close): behind the traceback of an exception that left its
    loop. That tells of no progress.
    """
    same = (pl.col(name).eq_missing(pl.col(name).shift(1)).over(part) for name in _SHOWN)
    is_loss = pl.col("step").is_not_null() & pl.col("loss").is_not_null()
    return (is_loss & pl.all_horizontal(same)).fill_null(value=False)


_SHOWN = ("step", "loss", "grad_norm", "learning_rate", "consumed_tokens", "mem_allocated_bytes", "mem_reserved_bytes")


def as_commands(lines: pl.DataFrame) -> pl.DataFrame:
    """`lines` with `text` as a shell would have it where it is a list of arguments.

    Python prints those of a command that failed: `CalledProcessError: Command '['sft.py', '--max_steps', '12']'`.

    >>> as_commands(pl.DataFrame({"text": ["['sft.py', '--bf16', '--max_steps', '12']"]})).item()
    'sft.py --bf16 --max_steps 12 '
    """
    text = pl.col("text")
    bare = text.str.replace_many({"', '": " ", "['": "", "']": " "})
    return with_text(lines, pl.when(text.str.contains("', '--", literal=True)).then(bare).otherwise(text))


_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?: ?[AP]M)?(?:Z|[-+][0-9]{2}:?[0-9]{2})?"
_DAY = r"(?:[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}|[0-9]{2}[-/.][0-9]{2}(?:[-/.][0-9]{2,4})?)[ T_]+"
_STAMP = rf"[\[(]?(?:{_DAY})?{_CLOCK}[\])]?"
_LEVEL = r"[\[(]?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|SUCCESS|info|debug|warning) *[\])]?"
# Without blanks, so that an epoch's number is none: its steps count from 0 again.
_BRACKET = r"\[(?:[A-Za-z_][^\]\s]{0,80} *|[0-9]{3,8}|[Rr]ank[ =:]?[0-9]+)\]"
_NAME = r"[A-Za-z_<][\w.<>/-]*(?::[\w.<>]+)*"
_MARK = r"[ \t]*[-:|>]?[ \t]*"
_NAMED = rf"{_NAME}[ \t]*[-:|>][ \t]*"

PREFIX = (
    rf"(?:{_NAMED}|{_BRACKET}{_MARK})?(?:{_STAMP}|{_LEVEL}){_MARK}(?:(?:{_STAMP}|{_LEVEL}|{_BRACKET}){_MARK}|{_NAMED})*"
)
"""What a user's own logger writes in front of a trainer's line: a time, a level, a module, in any order and brackets.

It has a time or a level, never a name alone: `Epoch: ` is a name, too. Formats: logging.basicConfig (`INFO:root:`), its
usual patterns (`2024-05-01 12:00:00,123 - train - INFO - `), Hydra (`[2024-05-01 12:00:00,123][__main__][INFO] - `),
loguru (`2024-05-01 12:00:00.123 | INFO     | __main__:main:45 - `), rich (`[05/01/24 12:00:00] INFO     `), ts and the
like (`12:00:00 `).
"""

_BASIC = r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):[\w.]{1,60}:"
"""What Python's logging puts in front by default, as in `INFO:__main__:`."""
LEADING = rf"(?:{_BASIC}|(?:(?:{_STAMP}|{_LEVEL}){_MARK}(?:{_NAMED}(?=[\[(]?(?:DEBUG|INFO|WARN|ERROR)))?)+)"
"""The times and levels at the begin of a line, with the names of loggers between them, and no name behind them."""


def without_logger(lines: pl.DataFrame, beginnings: str) -> pl.DataFrame:
    """`lines` with `text` from where one of `beginnings` follows a logger's PREFIX: a pattern without groups or digits.

    Other lines stay as they are; `logged` is the text of all as it was. A launcher's prefix is taken off for every
    dialect (`engine.cleaning`). This one only where a dialect asks for it: some are known by their own logger.
    """
    logged = rf"^{PREFIX}({beginnings})"
    marked = lines.with_columns(logged="text")
    if matching(lines, logged).is_empty():
        return marked
    return with_text(marked, pl.col("text").str.replace(logged, "${1}"))
