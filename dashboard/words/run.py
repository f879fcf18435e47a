"""The title, answer and facts of one run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.configuration import Fact
from dashboard.curves import Curve, beyond_in_words
from dashboard.frontier import hardware
from dashboard.labels import MISSING, count, memory, number, percent, seconds, significant
from dashboard.words.ailments import ailments
from dashboard.words.failures import hours_text, stretch

Run = Mapping[str, Any]

_ENDED = {
    "completed": "Completed",
    "oom": "Ran out of GPU memory",
    "host_oom": "Ran out of host memory",
    "hang": "Hung in a collective",
    "nccl_error": "Stopped by an NCCL or network error",
    "crash": "Crashed",
    "timeout": "Hit the scheduler's time limit",
    "cancelled": "Was cancelled",
    "node_fail": "Lost a node",
    "preempted": "Was preempted",
    "running": "Is still running",
    "truncated": "Its log stops without a reason",
    "failed": "Failed; its source gives no reason",
    "unknown": "How it ended is unknown",
}
_TROUBLE = {
    "exit_code": "an exit code",
    "exception": "an exception",
    "traceback": "a traceback",
    "child_failed": "failed workers",
    "sigterm": "SIGTERM",
    "sigkill": "SIGKILL",
    "hang": "a collective timeout",
    "nccl_error": "an NCCL error",
    "timeout": "a time limit",
}


def title(run: Run) -> str:
    """Model and hardware, as far as they are known."""
    model = run["model"] or "Model unknown"
    if run["num_gpus"] is None:
        return f"{model} · {run['accelerator']}" if run["accelerator"] else str(model)
    return f"{model} · {hardware(run['num_gpus'], run['accelerator'])}"


def answer(run: Run, evidence: Sequence[Mapping[str, Any]], last_step_line: int | None) -> str:
    """How it ended, how far it got and how fast it was."""
    ended = f"**{_ended(run)}**{_progress(run)}"
    text = f"{ended}{_speed(run)}."
    if run["status"] == "completed":
        text += _after_the_end(evidence, last_step_line)
    text += ailments(run, evidence)
    if run["quarantine_reason"]:
        text += f" Kept out of every ranking: {str(run['quarantine_reason']).rstrip('.')}."
    return text


def _ended(run: Run) -> str:
    if run["status"] == "completed" and run["origin"] == "published" and not run["steps_logged"]:
        return "Published as completed"
    if run["status"] == "completed" and run["steps_planned"] is not None and run["last_step"] == run["steps_planned"]:
        return f"Completed all {count(run['steps_planned'], 'step')}"
    if run["status"] == "hang" and run["status_confidence"] == "low":
        return "Went silent and probably hung"
    return _ENDED[run["status"]]


def _progress(run: Run) -> str:
    if run["origin"] == "published" and not run["steps_logged"]:
        return ""
    last, planned = run["last_step"], run["steps_planned"]
    if last is None:
        return "" if run["status"] == "completed" else " before its first logged step"
    if run["status"] == "completed":
        return "" if planned == last else f" at step {number(last)}"
    return f" after step {number(last)}" + (f" of {number(planned)}" if planned is not None and planned >= last else "")


def _speed(run: Run) -> str:
    parts = [f"{seconds(run['step_time_s'])} a step"] if run["step_time_s"] is not None else []
    if run["mfu"] is not None:
        parts.append(f"{percent(run['mfu'])} MFU")
    elif run["tokens_per_s_per_gpu"] is not None:
        parts.append(f"{number(run['tokens_per_s_per_gpu'])} tokens/s/GPU")
    if not parts:
        return ""
    joined = " and ".join(parts)
    return f" at {joined}" if run["status"] == "completed" else f", at {joined} until then"


def _after_the_end(evidence: Sequence[Mapping[str, Any]], last_step_line: int | None) -> str:
    if last_step_line is None:
        return ""
    kinds = [
        row["kind"]
        for row in evidence
        if row["kind"] in _TROUBLE and row["line_no"] is not None and row["line_no"] > last_step_line
    ]
    named = list(dict.fromkeys(_TROUBLE[kind] for kind in kinds))
    if not named:
        return ""
    listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    return f" The log also holds {listed}, but after the last step."


def conditions(run: Run) -> str:
    """Sweep, framework, layout and the statistic, for the meta line."""
    parts = [
        " › ".join(part for part in (run["sweep"], short_name(run)) if part),
        run["framework"],
        f"**{run['layout']}**" if run["layout"] else None,
        f"sequence {number(run['seq_len'])}" if run["seq_len"] is not None else None,
        str(run["precision"]).upper() if run["precision"] else None,
        _statistic(run),
    ]
    return " · ".join(str(part) for part in parts if part)


def _statistic(run: Run) -> str | None:
    if run["step_time_s"] is None or not run["steps_logged"]:
        return None
    dropped = run["warmup_steps_dropped"] or 0
    used = run["steps_logged"] - dropped
    warmup = f", {count(dropped, 'warm-up step')} dropped" if dropped else ""
    return f"median of {count(used, 'step')}{warmup}"


def evidence_line(run: Run, shown: Sequence[Mapping[str, Any]]) -> str:
    """Confidence, and the rule that decided the status; a line that is shown below is named by its number."""
    parts = [f"confidence {run['status_confidence']}"] if run["status_confidence"] else []
    told = str(run["status_evidence"] or "").strip()
    line = next((row["line_no"] for row in shown if told and told in row["text"]), None)
    if line is not None:
        parts.append(f"line {number(line)} decides")
    elif told:
        parts.append(told)
    return " · ".join(parts)


def figures(run: Run) -> list[tuple[str, str, str]]:
    """Four figures as label, value and note."""
    steady = "median of the steady steps" if run["steps_logged"] else "as published"
    return [
        ("MFU (recomputed)", percent(run["mfu"]), _mfu_note(run)),
        ("Tokens/s/GPU", number(run["tokens_per_s_per_gpu"]), steady if run["tokens_per_s_per_gpu"] else _absent(run)),
        ("Model TFLOP/s/GPU", significant(run["model_tflops_per_gpu"]), _tflops_note(run)),
        _memory(run),
    ]


def _absent(run: Run) -> str:
    return "not published" if run["origin"] == "published" else "not logged"


def _mfu_note(run: Run) -> str:
    if run["mfu"] is None:
        return str(run["mfu_basis"] or _absent(run))
    chip = f"{hardware(1, run['accelerator']).removeprefix('1 × ')} " if run["accelerator"] else ""
    peak = f"{chip}peak {number(run['peak_tflops'])} TFLOP/s" if run["peak_tflops"] is not None else ""
    printed = run["mfu_logged"]
    if printed is not None and percent(printed) != percent(run["mfu"]):
        return f"{peak}; printed as {percent(printed)}" if peak else f"printed as {percent(printed)}"
    return peak


def _tflops_note(run: Run) -> str:
    printed = run["tflops_per_gpu_logged"]
    if run["model_tflops_per_gpu"] is None:
        return f"{significant(printed)} as logged" if printed is not None else _absent(run)
    return f"recomputed; {significant(printed)} as logged" if printed is not None else "recomputed"


def _memory(run: Run) -> tuple[str, str, str]:
    name, used = "Peak allocated", run["mem_peak_allocated_bytes"]
    if used is None:
        name, used = "Peak reserved", run["mem_peak_reserved_bytes"]
    if used is None:
        return "Peak memory", MISSING, _absent(run)
    card = run["memory_bytes"]
    return name, memory(used), f"of {memory(card)} that the card can allocate" if card is not None else "card unknown"


def place(row: Mapping[str, Any], run: Run) -> str:
    """Where the run's layout stands in its cell."""
    if row["layouts_completed"] == 1:
        return "**Only completed layout** of its cell"
    among = count(row["layouts_completed"], "completed layout")
    if row["rank_in_cell"] == 1:
        return f"**Fastest of {among}** in its cell"
    gap = f", {percent(1 - run['tokens_per_s_per_gpu'] / row['winner_tokens_per_s_per_gpu'])} behind" if (
        run["tokens_per_s_per_gpu"] is not None and row["winner_tokens_per_s_per_gpu"]
    ) else ""  # fmt: skip
    return f"Rank {number(row['rank_in_cell'])} of {among} in its cell{gap} {row['winner_layout'] or 'the winner'}"


def short_name(run: Run) -> str:
    """Run directory (file, where a directory holds many runs) and attempt; file and line of a published one."""
    directory = str(run["run_dir"] or "").rstrip("/").rpartition("/")[2]
    file = str(run["source_path"] or run["run_id"]).rstrip("/").rpartition("/")[2]
    if run["origin"] == "published" and run["line_no"] is not None:
        return f"{file}, line {number(run['line_no'])}"
    name = file if directory in ("", run["sweep"]) else directory
    return f"{name}, attempt {number(run['attempt'])}" if (run["attempt"] or 1) > 1 else name


def no_curve(steps: int) -> str:
    """Why there is no curve."""
    return "No step was logged." if steps == 0 else "Only one step was logged, which makes no curve."


def curve_qualifier(curve: Curve) -> str:
    """What one point stands for, when it is not one step."""
    return f"each point is the median of {number(curve.steps_per_point)} steps" if curve.steps_per_point > 1 else ""


def curve_alt(curve: Curve) -> str:
    """What the curve shows, for those who cannot see it."""
    steps = curve.points["step"]
    span = f"steps {number(steps.min())} to {number(steps.max())}" if steps.len() else "no step"  # type: ignore[arg-type]
    median = f", steady median {curve.measure.text(curve.median / curve.measure.factor)}" if curve.median else ""
    beyond = beyond_in_words(curve)
    return f"{curve.measure.title} over {span}{median}{f'; off the axis: {beyond}' if beyond else ''}."


# What decides or contradicts a status says more than what merely happened, or than the head of a traceback.
_LAST = ("traceback", "launch", "config_conflict", "inconsistent", "skipped_step")


def telling(evidence: Sequence[Mapping[str, Any]], status: str, most: int) -> list[tuple[Mapping[str, Any], int]]:
    """At most `most` lines in file order, each with the number of lines like it that follow.

    Lines of the status' own kind come before others, heads of tracebacks, launches and conflicts last. Ranks say the
    same in lines that differ only by digits: one of them stands for all.
    """

    def rank(row: Mapping[str, Any]) -> int:
        return 0 if row["kind"] == status else 2 if row["kind"] in _LAST else 1

    alike: dict[str, list[Mapping[str, Any]]] = {}
    for row in evidence:
        alike.setdefault(re.sub(r"\d+", "#", row["text"].strip()), []).append(row)
    groups = sorted(enumerate(alike.values()), key=lambda group: (min(map(rank, group[1])), group[0]))[:most]
    # a line that says two things (an exception that is an out-of-memory) stands in two rows
    return [(rows[0], len({(row["source_path"], row["line_no"]) for row in rows}) - 1) for _, rows in sorted(groups)]


def source_note(run: Run, *, found: int) -> str:
    """The file that the lines stand in."""
    source = f"Source: {run['source_path'] or 'unknown'}"
    return source if found else f"No line of the log had to decide. {source}"


def publication(row: Run) -> list[tuple[str, str]]:
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


def memory_tracks(run: Run) -> list[tuple[str, str, float | None]]:
    """Name, size and share of the card of each peak that was logged; nothing when the card is unknown."""
    card = run["memory_bytes"]
    if not card:
        return []
    peaks = (("Allocated", run["mem_peak_allocated_bytes"]), ("Reserved", run["mem_peak_reserved_bytes"]))
    return [(name, memory(size), size / card) for name, size in peaks if size is not None]


def memory_qualifier(run: Run) -> str:
    """What the tracks' length is."""
    return f"track = {memory(run['memory_bytes'])} that the card can allocate"


def fact_note(fact: Fact) -> str:
    """Provenance of a value, short: assumptions and contradictions, else nothing."""
    if fact.contradiction:
        return f"{fact.source}; {fact.contradiction}" if fact.source else fact.contradiction
    return fact.source if fact.source.startswith(("assumed", "derived", "folder name")) else ""


def settings_title(settings: int, conflicts: int) -> str:
    """Title of the provenance table."""
    found = f" · {count(conflicts, 'conflict')}" if conflicts else ""
    return f"Where each value comes from · {count(settings, 'setting')}{found}"


def step_table_note(steps: int, rows: int) -> str:
    """What a row of the step table is."""
    if rows == steps:
        return "As logged, warm-up included."
    return f"Medians of consecutive steps, {number(rows)} rows in all. The CSV holds every step as logged."


def alike(more: int) -> str:
    """How many further lines say the same.

    >>> alike(0), alike(15)
    ('', '15 more like it')
    """
    return f"{number(more)} more like it" if more else ""


_BASIS = {
    "given": "as the scheduler or the source says",
    "timestamps": "from its first to its last timestamp",
    "steps": "at least: steps times step time, its log has no times for them",
}


def cost(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and value of what the run cost, whether it was stretched, and why it is worth another try."""
    hours, whole, idle, wait_s = (
        row[name] for name in ("gpu_hours", "sweep_gpu_hours", "gpu_hours_idle", "queue_wait_s")
    )
    if hours is None:
        pairs = [("Took", "unknown: its log has no times, and no steps with their times")]
    else:
        share = f", {percent(hours / whole)} of its sweep" if whole else ""
        basis = _BASIS.get(row["gpu_hours_basis"] or "", "")
        pairs = [("Took", f"**{hours_text(hours)}**{share}" + (f" ({basis})" if basis and not idle else ""))]
    if idle:
        pairs.append(("Held beyond the log", f"{hours_text(idle)}: start-up, waiting or hanging"))
    if wait_s:
        pairs.append(("Waited in the queue", f"{number(wait_s / 60, 1)} min"))
    if row["stretch_cause"]:
        pairs.append(("Took many times the usual", stretch(row)))
    if row["reason"]:
        pairs.append(("Worth submitting again", str(row["reason"])))
    return pairs


def alike_failures(runs: int) -> str:
    """How many others of the sweep failed in the same words."""
    return f"{count(runs, 'other run')} of the sweep, in the same words"
