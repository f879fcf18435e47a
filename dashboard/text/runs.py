"""The answer of Runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sweepscope.dashboard.format.numbers import count, number
from sweepscope.dashboard.queries.query import Row
from sweepscope.schemas.tables.inference import DOUBTFUL_SPEED

HIDES = (
    "A run is one attempt: a restarted job is listed once per launch. Medians leave the warm-up steps out; a dash "
    "means not logged or not published. MFU is computed from tokens/s and the model's shape, whatever was printed or "
    "published: its note marks where that is missing, too low, or not comparable with others."
)
_ATTENTION_LEFT_OUT = "attention left out"  # part of `mfu_basis` where the shape is unknown
_SHAPE_ASSUMED = "by the usual shape"  # part of `mfu_basis` where N is not stated, nor all it follows from
_OTHER_MODEL = "model "  # `comparability` of a model that the formula of MFU is not made for begins so


def answer(matching: Mapping[str, int], everything: Mapping[str, int], *, is_narrowed: bool) -> str:
    """How many runs are listed and how many of them completed.

    Both mappings are rows of `queries.runs.total`: `runs`, `completed`, `running`.
    """
    runs, completed = matching["runs"], matching["completed"]
    if everything["runs"] == 0:
        return "**This store has no runs.** Ingest a sweep directory to see them here."
    if runs == 0:
        return "**No run matches.** Shorten the search or remove a filter."
    still = f" {number(matching['running'])} still running." if matching["running"] else ""
    if not is_narrowed:
        return f"**{number(completed)} of {count(runs, 'run')} completed.**{still}"
    lead = f"**{number(runs)} of {count(everything['runs'], 'run')} {'matches' if runs == 1 else 'match'}**"
    if runs == 1:
        return f"{lead}; {'it completed' if completed else 'it did not complete'}.{still}"
    return f"{lead}; {number(completed)} of them completed.{still}"


def mfu_note(row: Row) -> str | None:
    """Why a run has no MFU, or what keeps it from being set beside another; None where nothing does.

    Short, because a table cuts what is long: the page of the run has the reason in full.

    >>> mfu_note({"mfu": None, "mfu_basis": "not computed: no throughput", "comparability": None})
    'no throughput'
    >>> mfu_note({"mfu": 0.4, "mfu_basis": "6N, attention left out; peak 989", "comparability": None})
    'attention not counted'
    >>> mfu_note({"mfu": 0.4, "mfu_basis": "6N + 12Lhs, N by the usual shape; peak 989", "comparability": None})
    'parameters assumed'
    """
    if row.get("quarantine_reason") == DOUBTFUL_SPEED:
        return "speed is a guess: confirm it on Data health"
    basis, stated = row["mfu_basis"] or "", row["comparability"] or ""
    if row["mfu"] is None:
        return basis.removeprefix("not computed: ") or None
    notes = [
        "above the peak" if row["mfu"] > 1 else "",
        "not comparable" if stated.startswith(_OTHER_MODEL) else "",
        "attention not counted" if _ATTENTION_LEFT_OUT in basis else "",
        "parameters assumed" if _SHAPE_ASSUMED in basis else "",
    ]
    return "; ".join(note for note in notes if note) or None


def page_line(*, offset: int, shown: int, runs: int, duplicates: int) -> str:
    """Which rows the table holds, and which it leaves out."""
    span = f"Rows {number(offset + 1)} to {number(offset + shown)} of {number(runs)}." if runs else ""
    left_out = ""
    if duplicates:
        left_out = f" {count(duplicates, 'duplicate')} of listed runs left out."
    return (span + left_out).strip()


def facet_option(words: str, runs: int) -> str:
    """A facet's value with the number of runs it would leave.

    >>> facet_option("▲ OOM", 12)
    '▲ OOM · 12'
    """
    return f"{words} · {number(runs)}"


def beside_hint(run_ids: Sequence[str]) -> str:
    """What ticking does where the address names runs to compare with.

    >>> beside_hint(["a1"])
    'Tick the rows to compare with run a1.'
    """
    noun = "run" if len(run_ids) == 1 else "runs"
    return f"Tick the rows to compare with {noun} {', '.join(run_ids)}."
