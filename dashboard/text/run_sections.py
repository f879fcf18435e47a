"""Sentences of the sections below the head of a run's page: curves, evidence, publication, memory, cost."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sweepscope.dashboard.format.numbers import count, dollars, memory, number, part_of, percent, seconds, significant
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text.failure_lists import duration, stretch
from sweepscope.dashboard.text.failures import hours_text
from sweepscope.dashboard.text.run import card_bytes, card_text
from sweepscope.dashboard.view_models.configuration import Fact
from sweepscope.dashboard.view_models.curves import Curve, beyond_in_words


def no_curve(steps: int) -> str:
    """Why there is no curve."""
    return "No step was logged." if steps == 0 else "Only one step was logged, which makes no curve."


def curve_qualifier(curve: Curve) -> str:
    """What one point covers, when it is not one step."""
    return f"each point is the median of {number(curve.steps_per_point)} steps" if curve.steps_per_point > 1 else ""


def curve_alt(curve: Curve) -> str:
    """What the curve shows, for those who cannot see it."""
    steps = curve.points["step"]
    span = f"steps {number(steps.min())} to {number(steps.max())}" if steps.len() else "no step"  # type: ignore[arg-type]  # of whole numbers
    median = f", steady median {curve.measure.text(curve.median / curve.measure.factor)}" if curve.median else ""
    beyond = beyond_in_words(curve)
    return f"{curve.measure.title} over {span}{median}{f'; off the axis: {beyond}' if beyond else ''}."


_LAST = ("traceback", "launch", "config_conflict", "inconsistent", "skipped_step")


def deciding_lines(evidence: Sequence[Row], status: str, most: int) -> list[tuple[Row, int]]:
    """At most `most` lines in file order, each with the number of lines like it that follow.

    Lines of the status' own kind come before others, heads of tracebacks, launches and conflicts last. Ranks print
    the same in lines that differ only by digits: one of them is kept for all.
    """

    def rank(row: Row) -> int:
        return 0 if row["kind"] == status else 2 if row["kind"] in _LAST else 1

    alike: dict[str, list[Row]] = {}
    for row in evidence:
        alike.setdefault(re.sub(r"\d+", "#", row["text"].strip()), []).append(row)
    groups = sorted(enumerate(alike.values()), key=lambda group: (min(map(rank, group[1])), group[0]))[:most]
    # a line of two kinds (an exception that is an out-of-memory) is in two rows
    return [(rows[0], len({(row["source_path"], row["line_no"]) for row in rows}) - 1) for _, rows in sorted(groups)]


def source_note(run: Row, *, found: int) -> str:
    """The file that holds the lines."""
    source = f"Source: {run['source_path'] or 'unknown'}"
    return source if found else f"No other line of the log was needed. {source}"


def publication(row: Row) -> list[tuple[str, str]]:
    """A published row in its source's own words: name and value of what it prints."""
    pairs = (
        ("Where in it", row["table_or_figure"]),
        ("MFU", None if row["mfu_pct"] is None else percent(row["mfu_pct"] / 100)),
        ("HFU", None if row["hfu_pct"] is None else percent(row["hfu_pct"] / 100)),
        ("TFLOP/s/GPU", None if row["tflops_per_gpu"] is None else significant(row["tflops_per_gpu"])),
        ("Tokens/s/GPU", None if row["tokens_per_s_per_gpu"] is None else number(row["tokens_per_s_per_gpu"])),
        ("Step time", None if row["step_time_s"] is None else seconds(row["step_time_s"])),
        ("Sharding", row["zero_stage_or_fsdp"]),
        ("Outcome", row["status"]),
        ("Comparable", row["comparability"]),
        ("Checked", row["verification"]),
    )
    return [(name, str(value)) for name, value in pairs if value is not None]


def memory_tracks(run: Row) -> list[tuple[str, str, float | None]]:
    """Name, size and share of the card of each peak that was logged; nothing when the card is unknown."""
    card = card_bytes(run)
    if not card:
        return []
    peaks = (
        ("Allocated", run["mem_peak_allocated_bytes"]),
        ("Reserved", run["mem_peak_reserved_bytes"]),
        ("Reserved when it failed", run["oom_reserved_bytes"]),
    )
    return [(name, memory(size), size / card) for name, size in peaks if size is not None]


def memory_qualifier(run: Row) -> str:
    """What the tracks' length is."""
    return f"track = {card_text(run)}"


def fact_note(fact: Fact) -> str:
    """Provenance of a value, short: assumptions and contradictions, else nothing."""
    if fact.contradiction:
        return f"{fact.source}; {fact.contradiction}" if fact.source else fact.contradiction
    return fact.source if fact.source.startswith(("assumed", "derived", "folder name")) else ""


def settings_title(settings: int, conflicts: int) -> str:
    """Title of the provenance table."""
    found = f" · {count(conflicts, 'conflict')}" if conflicts else ""
    return f"Where each value comes from · {count(settings, 'setting')}{found}"


def arguments_title(arguments: int) -> str:
    """Title of the table of what a run was launched with.

    >>> arguments_title(1), arguments_title(483)
    ('What it was launched with · 1 argument', 'What it was launched with · 483 arguments')
    """
    return f"What it was launched with · {count(arguments, 'argument')}"


def step_table_note(steps: int, rows: int) -> str:
    """What a row of the step table is."""
    if rows == steps:
        return "As logged, warm-up included."
    return f"Medians of consecutive steps, {number(rows)} rows in all. The CSV holds every step as logged."


def alike(more: int) -> str:
    """Number of further lines alike.

    >>> alike(0), alike(15)
    ('', '15 more like it')
    """
    return f"{number(more)} more like it" if more else ""


_BASIS = {
    "given": "as given by the scheduler or the source",
    "timestamps": "from its first to its last timestamp",
    "steps": "at least: steps × step time, for its log has no time stamps",
}


def cost(row: Row) -> list[tuple[str, str]]:
    """Name and value of what the run cost, whether it was stretched, and why it is worth another try."""
    hours, whole, idle = row["gpu_hours"], row["sweep_gpu_hours"], row["gpu_hours_idle"]
    if hours is None:
        pairs = [("Took", "unknown: its log has no times, and no steps with their times")]
    else:
        share = f", {part_of(hours / whole, 1)} of its sweep" if whole else ""
        basis = _BASIS.get(row["gpu_hours_basis"] or "", "")
        pairs = [("Took", f"**{hours_text(hours)}**{share}" + (f" ({basis})" if basis and not idle else ""))]
    if row["gpu_hours_held"]:
        pairs.append(("Held after the end", f"**{hours_text(row['gpu_hours_held'])}**, until something ended the job"))
    if idle and idle > (row["gpu_hours_held"] or 0):
        pairs.append(("Held beyond the log", f"{hours_text(idle)}: start-up, waiting or hanging"))
    if row["startup_s"]:
        pairs.append(("Start-up", f"{duration(row['startup_s'])} to the first step"))
    if row["queue_wait_s"]:
        pairs.append(("Waited in the queue", duration(row["queue_wait_s"])))
    if row["stretch_cause"]:
        pairs.append(("Took many times the usual", stretch(row)))
    if row["reason"]:
        pairs.append(("Worth submitting again", str(row["reason"])))
    return pairs


def money_and_energy(row: Row) -> list[tuple[str, str]]:
    """Name and value of what the run cost in dollars and in energy, of what is known of it (a row of `run_costs`)."""
    pairs = []
    if row["usd_per_gpu_hour"] is not None:
        price = f"at {dollars(row['usd_per_gpu_hour'])} per GPU-hour"
        paid = [dollars(row["run_usd"])] if row["run_usd"] is not None else []
        tokens = [f"{dollars(row['usd_per_m_tokens'])} per million tokens"] if row["usd_per_m_tokens"] else []
        if paid or tokens:
            pairs.append(("Cost", f"**{', '.join([*paid, *tokens])}** {price}"))
    if row["energy_kwh"] is not None:
        known = (
            "all GPUs sampled"
            if row["energy_basis"] == "sampled"
            else f"scaled from {count(row['gpus_sampled'], 'GPU')}"
        )
        pairs.append(("Energy of the GPUs", f"**{significant(row['energy_kwh'])} kWh** ({known})"))
    if row["tokens_per_joule"] is not None:
        power = f"{number(row['power_busy_w'])} W per GPU while it computed"
        per_million = f"{significant(row['kwh_per_m_tokens'])} kWh per million"
        pairs.append(("Tokens per joule", f"**{significant(row['tokens_per_joule'])}**, {per_million}; {power}"))
    return pairs


def alike_failures(runs: int) -> str:
    """How many others of the sweep failed in the same words."""
    return f"{count(runs, 'other run')} of the sweep, in the same words"
