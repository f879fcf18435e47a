"""What NCCL's output says of several runs, as lines with a text per column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from sweepscope.dashboard.format.numbers import capital, number, seconds
from sweepscope.dashboard.view_models.compare import Line, Subject
from sweepscope.schemas.vocab.nccl import RULE


def _listed(values: pl.Series) -> str:
    return ", ".join(sorted({part for text in values for part in str(text).split(", ")}))


def _largest(values: pl.Series) -> float:
    return float(max(values))


def _sum(values: pl.Series) -> float:
    return float(sum(values))


_FACTS: tuple[tuple[str, str, Callable[[pl.Series], str]], ...] = (
    ("nccl_version", "Library version", _listed),
    ("networks", "Network chosen", _listed),
    ("transports", "Transports in use", _listed),
    ("num_channels", "Ring channels", lambda values: number(_largest(values))),
    ("init_time_s", "Time to come up", lambda values: seconds(_largest(values))),
    ("num_warns", "Warnings", lambda values: number(_sum(values))),
    ("num_hangs", "Collectives that timed out", lambda values: number(_sum(values))),
    ("nccl_env", "Environment", _listed),
)


def fact_lines(columns: Sequence[Subject], files: Mapping[str, pl.DataFrame]) -> list[Line]:
    """Lines of facts; `files` are rows of `queries.run_network.files` by run."""

    def text(one: Subject, name: str, words: Callable[[pl.Series], str]) -> str | None:
        found = [files[run_id][name] for run_id in one.run_ids if files[run_id].height]
        known = pl.concat(found).drop_nulls() if found else pl.Series([])
        return words(known) if known.len() else None

    lines = [Line(name, label, tuple(text(one, name, words) for one in columns)) for name, label, words in _FACTS]
    return [line for line in lines if any(found is not None for found in line.texts)]


def finding_lines(columns: Sequence[Subject], findings: Mapping[str, pl.DataFrame]) -> list[Line]:
    """One line per rule that found something in any run, with its first evidence; `findings` are rows of
    `queries.run_network.findings` by run, of those runs that have NCCL output.
    """
    rules = sorted({rule for found in findings.values() for rule in found["nccl_rule"]})

    def text(one: Subject, rule: str) -> str | None:
        known = [findings[run_id] for run_id in one.run_ids if run_id in findings]
        if not known:
            return None
        hits = [row for found in known for row in found.filter(pl.col("nccl_rule") == rule).to_dicts()]
        return str(hits[0]["evidence"]) if hits else "not found"

    return [Line(rule, capital(RULE[rule]), tuple(text(one, rule) for one in columns)) for rule in rules]


def without_output(columns: Sequence[Subject], files: Mapping[str, pl.DataFrame]) -> str:
    """Which runs have no NCCL output: of them nothing was found because nothing was looked at."""
    silent = [one.letter for one in columns if all(files[run_id].is_empty() for run_id in one.run_ids)]
    return f"No NCCL output in the files of {' and '.join(silent)}." if silent else ""
