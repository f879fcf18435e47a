"""Published configurations and this store's own best as the dots of one chart.

Three kinds of figure are kept apart: an MFU that may be compared (model FLOPs over the dense BF16 peak, as
its source prints it), an MFU that may not (another numerator or peak, or derived), and HFU, which counts recomputation.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from sweepscope.dashboard.format.devices import CPU, devices
from sweepscope.dashboard.format.numbers import number, token_count
from sweepscope.dashboard.format.printed_mfu import beside_computed
from sweepscope.pipeline.estimate.rows.ceiling import CEILING, ceilings
from sweepscope.pipeline.reference.layout_text import layout_texts

COMPARABLE = "comparable"
Kind = Literal["comparable", "other", "own"]


@dataclass(frozen=True)
class Dot:
    """One row of the chart. `reason` is why an MFU is hollow; `mfu` is None where only HFU is known; `ceiling` is the
    MFU that the estimator allows its layout, filled up where the source does not state all of it; `printed` what the
    log of an own run prints instead of `mfu`.
    """

    run_id: str
    name: str
    hardware: str
    kind: Kind
    mfu: float | None
    hfu: float | None
    reason: str | None
    num_gpus: int | None
    source: str | None = None
    ceiling: float | None = None
    ceiling_layout: str | None = None
    printed: str | None = None

    @property
    def value(self) -> float:
        """What the row is sorted by: MFU, else HFU."""
        figure = self.mfu if self.mfu is not None else self.hfu
        assert figure is not None, self.run_id  # noqa: S101 - `dots` makes no dot without a figure
        return figure


def with_ceilings(published: pl.DataFrame, stated: pl.DataFrame) -> pl.DataFrame:
    """`published` with the columns of the estimator's `ceilings`.

    `published` are rows of `queries.frontier.published`, `stated` of `queries.frontier.stated`.
    """
    found = ceilings(stated).select("run_id", *CEILING)
    return published.join(found, on="run_id", how="left", maintain_order="left")


def reached(published: pl.DataFrame) -> tuple[float, int] | None:
    """(median share of the ceiling that comparable rows reach, number of rows), or None where no row has both."""
    both = published.filter(
        (pl.col("comparability") == COMPARABLE) & ~pl.col("is_mfu_recomputed") & pl.col("ceiling_mfu").is_not_null()
    ).drop_nulls("mfu")
    median = both.select((pl.col("mfu") / pl.col("ceiling_mfu")).median()).item()
    return None if median is None else (float(median), both.height)


def dots(published: pl.DataFrame, best_here: pl.DataFrame, *, is_short: bool) -> list[Dot]:
    """The rows to draw, lowest value first.

    Args:
        published: rows of `queries.frontier.published`; those without MFU and HFU are left out.
        best_here: rows of `queries.frontier.own_best`.
        is_short: keep of each model and sequence length the largest run and the highest comparable one.
    """
    figures = published.filter(pl.any_horizontal(pl.col("mfu", "hfu").is_not_null()))
    if is_short:
        figures = _best_and_largest(figures)
    rows = figures.to_dicts()
    lengths: dict[str, set[int | None]] = {}
    for row in rows:
        lengths.setdefault(row["model"], set()).add(row["seq_len"])
    drawn = [_published_dot(row, lengths[row["model"]]) for row in rows] + [
        _own_dot(row) for row in best_here.to_dicts()
    ]
    return sorted(drawn, key=lambda dot: (dot.value, dot.num_gpus or 0, dot.name))


_STATED = {"gpu_hours_per_t_tokens": pl.Float64, "goodput_pct": pl.Float64, "cost_usd": pl.Float64}


def table(published: pl.DataFrame, best_here: pl.DataFrame | None = None) -> pl.DataFrame:
    """Rows for the table, this store's own best first, with their `layout`, when and what at what cost they published.

    A cell that no source states is NULL.
    """
    rows = published.with_columns(
        layout_texts(published),
        *(_stated(published, name) for name in _STATED),
        pl.Series("published_on", [published_on(url) for url in published["source_url"]], dtype=pl.String),
    )
    if best_here is None or best_here.is_empty():
        return rows
    own = best_here.with_columns(
        model=pl.format("Best here: {}", pl.col("model").fill_null("model unknown")), global_batch_tokens="gbs_tokens"
    )
    kept = own.select([name for name in own.columns if name in rows.columns])
    return pl.concat([kept, rows], how="diagonal_relaxed").select(rows.columns)


def _stated(published: pl.DataFrame, name: str) -> pl.Series:
    """A figure that only the table of the publications has, from its column of all such."""
    found = [json.loads(text).get(name) if text else None for text in published["extra"]]
    return pl.Series(name, found, dtype=pl.String, strict=False).cast(_STATED[name], strict=False)


def published_on(url: str | None) -> str | None:
    """Month of a publication, which the number of an arXiv article begins with; None of other addresses.

    >>> published_on("https://arxiv.org/abs/2407.21783"), published_on("https://example.org")
    ('2024-07', None)
    """
    found = re.search(r"arxiv\.org/(?:abs|pdf)/(\d\d)(\d\d)\.\d{4,5}", url or "")
    return f"20{found[1]}-{found[2]}" if found and 1 <= int(found[2]) <= 12 else None


RIVALS = ("Llama 3.1 405B", "DeepSeek-V3", "PaLM 540B")
"""Runs that everybody knows, whose layouts are published."""


def rivals(published: pl.DataFrame, num_gpus: int | None) -> list[dict[str, Any]]:
    """Of each of RIVALS the row whose GPU count is nearest, or where none is there the three nearest rows of all.

    Rows without MFU and HFU are left out; of equally near ones the first, which has the highest MFU.
    """
    figures = published.filter(pl.any_horizontal(pl.col("mfu", "hfu").is_not_null()))
    distance = (pl.col("num_gpus") / max(num_gpus or 1, 1)).log().abs()
    near = figures.with_columns(distance=distance).sort("distance", nulls_last=True, maintain_order=True)
    known = near.filter(pl.col("model").is_in(RIVALS)).unique("model", keep="first", maintain_order=True)
    found = {row["model"]: row for row in known.iter_rows(named=True)}
    if found:
        return [found[name] for name in RIVALS if name in found]
    return near.unique("model", keep="first", maintain_order=True).head(len(RIVALS)).to_dicts()


def _best_and_largest(figures: pl.DataFrame) -> pl.DataFrame:
    # Slides that quote a paper repeat it, often without its details; the paper's own row is the one to show.
    named = figures.with_columns(
        group=pl.col("model").str.replace(r" \(\d+ nodes\)$", "") + pl.col("seq_len").cast(pl.String).fill_null("")
    ).filter(pl.col("verification").ne_missing("slides"))
    comparable = pl.when((pl.col("comparability") == COMPARABLE) & ~pl.col("is_mfu_recomputed")).then("mfu")
    keep = (
        (comparable == comparable.max().over("group"))
        | (pl.col("num_gpus") == pl.col("num_gpus").max().over("group"))
        | pl.col("num_gpus").is_null()
    )
    # of equal figures only the largest run is kept
    return (
        named.filter(keep)
        .sort("num_gpus", descending=True, nulls_last=True, maintain_order=True)
        .unique(["group", "mfu", "hfu"], keep="first", maintain_order=True)
    )


def _published_dot(row: dict[str, Any], lengths: set[int | None]) -> Dot:
    known = [length for length in lengths if length is not None]
    name = str(row["model"])
    # Only a model that was trained at several lengths needs its length in the name.
    if len(known) > 1 and row["seq_len"] is not None and row["seq_len"] > min(known):
        name += f", {token_count(row['seq_len'])}"
    is_comparable = row["comparability"] == COMPARABLE and not row["is_mfu_recomputed"]
    return Dot(
        run_id=row["run_id"],
        name=name,
        hardware=hardware(row["num_gpus"], row["accelerator"]),
        kind="comparable" if is_comparable and row["mfu"] is not None else "other",
        mfu=row["mfu"],
        hfu=row["hfu"],
        reason=_reason(row) if row["mfu"] is not None and not is_comparable else None,
        num_gpus=row["num_gpus"],
        source=", ".join(part for part in (row["source_title"], row["table_or_figure"]) if part) or None,
        ceiling=row.get("ceiling_mfu"),
        ceiling_layout=row.get("ceiling_layout"),
    )


def _reason(row: dict[str, Any]) -> str:
    stated = str(row["comparability"] or "comparability unknown")
    if row["is_mfu_recomputed"] and "derived" not in stated:
        return "recomputed from its throughput"
    return stated.removesuffix(", no MFU published")


def _own_dot(row: dict[str, Any]) -> Dot:
    return Dot(
        run_id=row["run_id"],
        name=f"Best here: {row['model'] or 'model unknown'}",
        hardware=hardware(row["num_gpus"], row["accelerator"]),
        kind="own",
        mfu=row["mfu"],
        hfu=None,
        reason=None,
        num_gpus=row["num_gpus"],
        source=row["layout"],
        ceiling=row.get("est_mfu"),
        ceiling_layout=row["layout"],
        printed=beside_computed(row) or None,
    )


def hardware(num_gpus: int | None, accelerator: str | None) -> str:
    """GPU count and chip, without form factor and memory.

    >>> hardware(16384, "H100-SXM-80GB"), hardware(None, "TPU v4"), hardware(8, None), hardware(4, "CPU")
    ('16,384 × H100', 'TPU v4, count not published', '8 GPUs', '4 CPU ranks')
    """
    if accelerator == CPU and num_gpus is not None:
        return devices(num_gpus, accelerator)
    chip = re.split(r"-(?=SXM|PCIe|\d)", accelerator)[0] if accelerator else None
    if num_gpus is None:
        return f"{chip or 'hardware'}, count not published"
    return f"{number(num_gpus)} × {chip}" if chip else f"{number(num_gpus)} GPUs"
