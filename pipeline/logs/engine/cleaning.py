"""Lines as a framework printed them: without carriage returns, colours and launcher prefixes.

That is done here once, so that no dialect has to.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import polars as pl

from sweepscope.pipeline.text.arrow_buffers import buffers_of
from sweepscope.pipeline.text.line_templates import LineTemplates, template_hashes
from sweepscope.pipeline.text.lines import MAX_LINE_CHARS
from sweepscope.pipeline.text.literals import Literals

LINES = pl.Schema({"source": pl.Int64, "line_no": pl.Int64, "text": pl.String, "rank": pl.Int64, "host": pl.String})

_NO_PREFIX = [
    pl.lit(None, dtype).alias(name)
    for name, dtype in {"prefix": pl.String, "rank": pl.Int64, "host": pl.String}.items()
]

_CUT_TEMPLATE = pl.lit(0xC2B2AE3D27D4EB4F, pl.UInt64)

BOUNDARY_LINES = 20
"""Lines at the begin and the end of a file in which a timestamp is looked for, whatever they hold."""

# CSI sequences (16 colours, 256 colours, 24 bit, clear screen), OSC titles, and lone two-byte escapes.
_ANSI = r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_]"

# tqdm's bar (std.py format_meter) and what another stream, or another process, printed right behind it.
_COUNT = r"[0-9.]+[kMGTP]?"
_GLUED = rf"((?:\| *{_COUNT}/{_COUNT}|{_COUNT}[a-z]+) \[[0-9:]+(?:<[0-9:?]+)?, [^\[\]]*/[a-z]+[^\[\]]*\])([^\s\]])"

# A number as the library that holds it shows it: torch's and JAX's tensors without a dimension, NumPy 2's scalars.
_HELD = r"\b(?:tensor|(?:Device)?Array|(?:np|numpy)\.(?:float|int)[0-9]{1,3})"
_SCALAR = rf"{_HELD}\((-?[0-9.]+(?:e[-+]?[0-9]+)?|-?inf|nan)(?:, *[a-z_]+=[^(),\[\]]+)*\)"

_CARETS = {"^M": "\r", "^[[": "\x1b["}
"""How `cat -v` and pagers write control characters."""

# One launcher prefix. torchrun --tee prints [default3]: or [rank0]: (twice in error text), srun --label `16: ` (padded
# to the widest label), mpirun `[1,14]<stderr>:`, pdsh `vm-07-14: `, the bigcode launcher `[ip-26-0-147-189:0]:`,
# nemo-run `task/0 `, Primus `[20260511 02:59:23][rank-7/8][DEBUG] [---utils.py:425] : ` (old versions lack the second
# part, coloured ones begin with the level) and `[2025-11-07 08:15:00] [NODE-0(host)] [INFO] ` (runner/lib/common.sh),
# absl and torchrun's agent `I0811 21:54:55.531340 1383 metric_logger.py:226] `, and Ray `(Actor pid=1, ip=..) `.
# SkyPilot's `(head, rank=0, pid=4503) ` names nodes, not ranks; kubectl logs --prefix prints `[pod/name/container] `.
# SageMaker's mpirun prints `[1,mpirank:3,algo-1]<stdout>:`; kubectl logs --timestamps and docker logs -t the time, to
# which the files of a node (/var/log/pods) add the stream and whether the line is whole. A pdsh host without a hyphen
# counts if it is an address or begins as hosts do: `bf16: true` is a setting.
_PREFIXES = (
    r"\[(?:default|rank)\d+\]:",
    r" *\d{1,5}: ",
    r"\[\d+,(?:\d+|mpirank:[0-9]+,algo-[0-9]+)\]<std(?:out|err)>:",
    r"\[[A-Za-z][\w.-]*:\d+\]:",
    r"[A-Za-z][\w.]*(?:-[\w.]+)+: ",
    r"(?:localhost|(?:node|worker|gpu|host|nid|dgx|compute)[0-9]{1,6}|[0-9]{1,3}(?:\.[0-9]{1,3}){3}): ",
    r"[A-Za-z][\w.-]*/\d+ ",
    r"(?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] )?\[NODE-(?:\d+|\?)\([\w.-]+\)\] \[[A-Z]+\] ",
    r"(?:[A-Z]{4,8} +)?\[\d{8} \d\d:\d\d:\d\d\]\[rank-\d+/\d+\]\[[A-Z]+ *\] *(?:\[[-\w.]+:\d+\] ?: ?)?",
    r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]+:\d+\] ",
    r"\(\w+ pid=\d+(?:, ip=[\w.:-]+)?\) ",
    r"\([\w.-]+,(?: rank=[0-9]+,)? pid=[0-9]+(?:, ip=[\w.:-]+)?\) ",
    r"\[pod/[\w.-]+/[\w.-]+\] ",
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2}) "
    r"(?:std(?:out|err) [FP] )?",
)
_PREFIX = "^(?:" + "|".join(_PREFIXES) + ")+"
NUMBER = r"^ *\d{1,5}: $"
"""That prefix of these which may be the number of a step."""

# In the order of trust: the global rank, the task of the launcher, the rank within the node.
_PREFIX_RANKS = (
    r"\[rank(\d+)\]",
    r"\[rank-(\d+)/",
    r"\[\d+,(?:mpirank:)?(\d+)[\],]",
    r"^ *(\d{1,5}): ",
    r"\[default(\d+)\]",
)
_PREFIX_HOSTS = (
    r"^\[([A-Za-z][\w.-]*):\d+\]:",
    r"^([A-Za-z][\w.]*(?:-[\w.]+)+): ",
    r"^([a-z]+\d*|\d+(?:\.\d+){3}): ",
    r"^\[\d+,mpirank:\d+,(algo-\d+)\]<",
    r"\[NODE-(?:\d+|\?)\(([\w.-]+)\)\] \[",
)


def candidates(lines: pl.DataFrame, literals: Collection[str]) -> pl.DataFrame:
    """Lines that hold one of the literals, cleaned, in order: LINES columns, `prefix` and `template`."""
    templates = LineTemplates.of(lines)
    found = templates.holding(literals) | _hidden_by_colours(templates, literals)
    return _cleaned(lines.filter(found), wanted=literals)


def _hidden_by_colours(templates: LineTemplates, literals: Collection[str]) -> np.ndarray:
    """Whether a line may hold one of the literals once its colours are gone: a colour may be inside of one."""
    wanted = Literals.of(frozenset(literals))

    def may_hold(text: pl.Series) -> pl.Series:
        is_painted = text.str.contains("\x1b", literal=True)
        if not is_painted.any():
            return is_painted
        bare = text.filter(is_painted).str.replace_all(_ANSI, "")
        return is_painted.scatter(is_painted.arg_true(), wanted.may_be_in(bare))

    return templates.answers(may_hold, name=("hidden", wanted)).astype(bool)


def boundary_lines(lines: pl.DataFrame) -> pl.DataFrame:
    """The first and last BOUNDARY_LINES of each source, as they are: they hold the times of a run's begin and end.

    `lines` has the lines of each source in a row.
    """
    lengths = lines["source"].rle().struct.field("len").to_numpy().astype(np.int64)
    stops = np.cumsum(lengths)
    near = np.arange(BOUNDARY_LINES)
    positions = np.concatenate([np.add.outer(stops - lengths, near).ravel(), np.add.outer(stops - 1, -near).ravel()])
    of_run = np.repeat(np.arange(len(stops)), BOUNDARY_LINES)
    of_run = np.concatenate([of_run, of_run])
    is_inside = (positions >= (stops - lengths)[of_run]) & (positions < stops[of_run])
    return lines[np.unique(positions[is_inside])]


def clean(lines: pl.DataFrame) -> pl.DataFrame:
    """LINES columns and `prefix`: without line ends, colours and launcher prefixes, a row per redraw of a line."""
    return _cleaned(lines, wanted=None)


def _cleaned(lines: pl.DataFrame, *, wanted: Collection[str] | None) -> pl.DataFrame:
    """The lines cleaned; most need no change, so only the others are taken apart.

    `wanted`: of the lines that are cut short, split or stripped of colours, those that hold one of these literals are
    kept; without it, all are.
    """
    if lines.is_empty():
        return lines.with_columns(_NO_PREFIX)
    rows = lines.with_columns(pl.col("text").str.strip_chars_end("\r\n")).with_row_index("row")
    templates = LineTemplates.of(rows)
    is_odd, prefix = templates.answers(_is_odd).astype(bool), templates.answers(_prefix_chars)
    if not (is_odd.any() or prefix.any()):
        return rows.with_columns(_NO_PREFIX).drop("row")
    is_prefixed = (prefix > 0) & ~is_odd
    plain = rows.filter(~is_odd & ~is_prefixed).with_columns(_NO_PREFIX)
    cut, unpainted = _cut(rows.filter(is_prefixed), prefix[is_prefixed]), _unpainted(rows.filter(is_odd), wanted)
    parts = [part for part in (plain, _labelled(pl.concat([cut, unpainted]))) if part.height]
    if not parts:
        return plain.drop("row")
    together = pl.concat(parts)
    is_sorted = len(parts) == 1 and (cut.is_empty() or unpainted.is_empty())
    return (together if is_sorted else together.sort("row", maintain_order=True)).drop("row")


def with_numbers(rows: pl.DataFrame) -> pl.DataFrame:
    """Cleaned lines that begin with their number and a colon again: it is a step's, as in `120: train 3.2`.

    So do trainers without a word for it; `srun --label` puts a rank there.
    """
    is_number = pl.col("prefix").str.contains(NUMBER).fill_null(value=False)
    if not rows.select(is_number.any()).item():
        return rows
    text = pl.when(is_number).then(pl.concat_str("prefix", "text")).otherwise("text")
    rank = pl.when(~is_number).then("rank")
    whole = rows.with_columns(text=text, rank=rank, prefix=pl.when(~is_number).then("prefix"))
    return _hashed(whole) if "template" in rows.columns else whole


def _is_odd(text: pl.Series) -> pl.Series:
    """Whether more than a prefix is to be taken off a line."""
    return text.str.contains(rf"[\r\x1b]|\^M|\^\[\[|{_GLUED}|{_SCALAR}") | (text.str.len_bytes() > MAX_LINE_CHARS)


def _prefix_chars(text: pl.Series) -> pl.Series:
    """How long the launchers' prefixes of a line are; as long as any line may be where they are longer."""
    return text.str.extract(_PREFIX, 0).str.len_chars().fill_null(0).clip(upper_bound=MAX_LINE_CHARS)


def _cut(rows: pl.DataFrame, length: np.ndarray) -> pl.DataFrame:
    """The lines and, as `prefix`, so many characters of their beginning apart."""
    if not length.any():
        return rows.with_columns(prefix=pl.lit(None, pl.String))
    text, cut = pl.col("text"), pl.lit(pl.Series(length))
    return rows.with_columns(
        text.str.slice(cut),
        prefix=pl.when(cut > 0).then(text.str.slice(0, cut)),
        template=pl.when(cut > 0).then(pl.col("template") ^ _CUT_TEMPLATE).otherwise("template"),
    )


def _unpainted(rows: pl.DataFrame, wanted: Collection[str] | None) -> pl.DataFrame:
    """The lines without colours, a row per redraw, cut where they are long; those `wanted`, without their `prefix`."""
    drawn = _drawn(rows)
    if wanted is not None:
        drawn = drawn.filter(LineTemplates.of(drawn).holding(wanted))
    bare = _cut(drawn, LineTemplates.of(drawn).answers(_prefix_chars))
    return bare.with_columns(prefix=pl.coalesce("prefix", "shared")).drop("shared")


def _drawn(rows: pl.DataFrame) -> pl.DataFrame:
    """A row per redraw, without colours; and, as `shared`, what a launcher has put in front of the physical line."""
    text = pl.col("text")
    if rows.is_empty():
        return rows.with_columns(shared=pl.lit(None, pl.String))
    templates = LineTemplates.of(rows)
    rows = rows.with_columns(shared=_cut(rows, templates.answers(_prefix_chars))["prefix"])
    if templates.matching(r"\^M|\^\[\[").any():
        rows = rows.with_columns(text.str.replace_many(_CARETS))
    drawn = rows.with_columns(text.str.strip_chars_end("\r").str.split("\r")).explode("text")
    shown = drawn["text"]
    if (shown.str.len_bytes() > MAX_LINE_CHARS).any():
        shown = shown.str.slice(0, MAX_LINE_CHARS)
    if (is_painted := shown.str.contains("\x1b", literal=True)).any():
        shown = shown.scatter(is_painted.arg_true(), shown.filter(is_painted).str.replace_all(_ANSI, ""))
    drawn = _hashed(drawn.with_columns(shown))
    if LineTemplates.of(drawn).matching(_SCALAR).any():
        drawn = _hashed(drawn.with_columns(text.str.replace_all(_SCALAR, "${1}")))
    if LineTemplates.of(drawn).matching(_GLUED).any():
        parts = drawn.with_columns(text.str.replace_all(_GLUED, "${1}\n${2}").str.split("\n"))
        drawn = _hashed(parts.explode("text"))
    return drawn


def _hashed(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(template=template_hashes(*buffers_of(rows["text"])))


def _labelled(rows: pl.DataFrame) -> pl.DataFrame:
    """The lines with the `rank` and `host` that a launcher's prefix names."""
    prefix = pl.col("prefix")
    if rows["prefix"].null_count() == rows.height:
        return rows.with_columns(_NO_PREFIX[1:])
    # A log has few distinct prefixes: rank and host are read once from each.
    labels = rows.select(prefix.unique().drop_nulls()).with_columns(
        rank=pl.coalesce(*(prefix.str.extract(pattern) for pattern in _PREFIX_RANKS)).cast(pl.Int64, strict=False),
        host=pl.coalesce(*(prefix.str.extract(pattern) for pattern in _PREFIX_HOSTS)),
    )
    return rows.join(labels, on="prefix", how="left", maintain_order="left")
