"""The title, answer and facts of one run."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.dashboard.format.implementation import IMPLEMENTATION, framework_name, phrase
from sweepscope.dashboard.format.numbers import (
    MISSING,
    count,
    faster_than,
    memory,
    number,
    percent,
    seconds,
    significant,
)
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text.health_findings import health_findings
from sweepscope.dashboard.text.run_steps import MEANS, counts_steps, is_last_of_planned, last_step
from sweepscope.dashboard.view_models.frontier import hardware

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


def title(run: Row) -> str:
    """Model and hardware, as far as they are known."""
    model = run["model"] or "Model unknown"
    if run["num_gpus"] is None:
        return f"{model} · {run['accelerator']}" if run["accelerator"] else str(model)
    return f"{model} · {hardware(run['num_gpus'], run['accelerator'])}"


def answer(run: Row, evidence: Sequence[Row], last_step_line: int | None) -> str:
    """How it ended, how far it got and how fast it was."""
    how = f"**{ended(run)}**{_progress(run)}"
    text = f"{how}{_speed(run)}."
    if run["status"] == "completed":
        text += _after_the_end(evidence, last_step_line)
    text += health_findings(run, evidence)
    if run["quarantine_reason"]:
        text += f" Kept out of every ranking: {str(run['quarantine_reason']).rstrip('.')}."
    return text


def ended(run: Row) -> str:
    """How it ended, as the beginning of a sentence."""
    if run["status"] == "completed" and run["origin"] == "published" and not run["steps_logged"]:
        return "Published as completed"
    if run["status"] == "completed" and run["steps_planned"] is not None and is_last_of_planned(run):
        return f"Completed all {count(run['steps_planned'], 'step')}"
    if run["status"] == "hang" and run["status_confidence"] == "low":
        return "Went silent and probably hung"
    return _ENDED[run["status"]]


def _progress(run: Row) -> str:
    if run["origin"] == "published" and not run["steps_logged"]:
        return ""
    last, planned = run["last_step"], run["steps_planned"]
    if last is None:
        return "" if run["status"] == "completed" else " before its first logged step"
    if run["status"] == "completed":
        return "" if is_last_of_planned(run) or not counts_steps(run) else f" at {last_step(run)}"
    is_within = counts_steps(run) and planned is not None and planned >= last
    return f" after {last_step(run)}" + (f" of {number(planned)}" if is_within else "")


def _speed(run: Row) -> str:
    parts = [f"{seconds(run['step_time_s'])} a step"] if run["step_time_s"] is not None else []
    if run["mfu"] is not None:
        parts.append(f"{percent(run['mfu'])} MFU")
    elif run["tokens_per_s_per_gpu"] is not None:
        parts.append(f"{number(run['tokens_per_s_per_gpu'])} tokens/s/GPU")
    if not parts:
        return ""
    joined = " and ".join(parts)
    return f" at {joined}" if run["status"] == "completed" else f", at {joined} until then"


def _after_the_end(evidence: Sequence[Row], last_step_line: int | None) -> str:
    if last_step_line is None:
        return ""
    later = [row["kind"] for row in evidence if row["line_no"] is not None and row["line_no"] > last_step_line]
    named = list(dict.fromkeys(_TROUBLE[kind] for kind in later if kind in _TROUBLE))
    if not named:
        return ""
    listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    return f" The log also holds {listed}, but after the last step."


def conditions(run: Row) -> str:
    """Sweep, framework, layout and the statistic, for the meta line."""
    parts = [
        " › ".join(part for part in (run["sweep"], short_name(run)) if part),
        framework_name(run["framework"]),
        f"**{run['layout']}**" if run["layout"] else None,
        f"sequence {number(run['seq_len'])}" if run["seq_len"] is not None else None,
        str(run["precision"]).upper() if run["precision"] else None,
        _statistic(run),
    ]
    return " · ".join(str(part) for part in parts if part)


def _statistic(run: Row) -> str | None:
    if run["step_time_s"] is None or not run["steps_logged"]:
        return None
    if run["step_time_basis"] in MEANS:
        return MEANS[run["step_time_basis"]]
    dropped = run["warmup_steps_dropped"] or 0
    used = run["steps_logged"] - dropped
    warmup = f", {count(dropped, 'warm-up step')} dropped" if dropped else ""
    return f"median of {count(used, 'step')}{warmup}"


def evidence_line(run: Row, shown: Sequence[Row]) -> str:
    """Confidence, and the rule that decided the status; a line that is shown below is named by its number."""
    parts = [f"confidence {run['status_confidence']}"] if run["status_confidence"] else []
    reason = str(run["status_evidence"] or "").strip()
    line = next((row["line_no"] for row in shown if reason and reason in row["text"]), None)
    if line is not None:
        parts.append(f"line {number(line)} decides")
    elif reason:
        parts.append(reason)
    return " · ".join(parts)


_STATED = ("whole_run", "summary", "time_stamps")


def figures(run: Row) -> list[tuple[str, str, str]]:
    """Four figures as label, value and note."""
    steady = "median of the steady steps" if run["steps_logged"] else "as published"
    steady = MEANS[run["step_time_basis"]] if run["step_time_basis"] in _STATED else steady
    return [
        ("MFU (recomputed)", percent(run["mfu"]), _mfu_note(run)),
        ("Tokens/s/GPU", number(run["tokens_per_s_per_gpu"]), steady if run["tokens_per_s_per_gpu"] else _absent(run)),
        ("Model TFLOP/s/GPU", significant(run["model_tflops_per_gpu"]), _tflops_note(run)),
        _memory(run),
    ]


def _absent(run: Row) -> str:
    return "not published" if run["origin"] == "published" else "not logged"


def _mfu_note(run: Row) -> str:
    if run["mfu"] is None:
        return str(run["mfu_basis"] or _absent(run))
    chip = f"{hardware(1, run['accelerator']).removeprefix('1 × ')} " if run["accelerator"] else ""
    peak = f"{chip}peak {number(run['peak_tflops'])} TFLOP/s" if run["peak_tflops"] is not None else ""
    printed = run["mfu_logged"]
    if printed is not None and percent(printed) != percent(run["mfu"]):
        return f"{peak}; printed as {percent(printed)}" if peak else f"printed as {percent(printed)}"
    return peak


def _tflops_note(run: Row) -> str:
    printed = run["tflops_per_gpu_logged"]
    if run["model_tflops_per_gpu"] is None:
        return f"{significant(printed)} as logged" if printed is not None else _absent(run)
    return f"recomputed; {significant(printed)} as logged" if printed is not None else "recomputed"


def _memory(run: Row) -> tuple[str, str, str]:
    name, used = "Peak allocated", run["mem_peak_allocated_bytes"]
    if used is None:
        name, used = "Peak reserved", run["mem_peak_reserved_bytes"]
    if used is None:
        name, used = "Reserved when it failed", run["oom_reserved_bytes"]
    card = card_text(run)
    if used is None:
        note = f"{_absent(run)}; the card has {card}" if run["oom_capacity_bytes"] else _absent(run)
        return "Peak memory", MISSING, note
    return name, memory(used), f"of {card}" if card else "the card's memory is unknown"


def card_bytes(run: Row) -> int | None:
    """Memory of the card: from its out-of-memory lines, else of its kind."""
    size: int | None = run["oom_capacity_bytes"] or run["memory_bytes"]
    return size


def card_text(run: Row) -> str:
    """The same in words, with its source; empty where it is unknown."""
    size = card_bytes(run)
    if size is None:
        return ""
    source = ", by its out-of-memory line" if run["oom_capacity_bytes"] else " that the card can allocate"
    return f"{memory(size)}{source}"


def rank_text(row: Row) -> str:
    """Rank of the run's layout in its cell; `row` is one of `queries.run.place_in_cell`."""
    if row["layouts_completed"] == 1:
        return "**Only completed layout** of its cell"
    among = count(row["layouts_completed"], "completed layout")
    if row["rank_in_cell"] == 1:
        return f"**Fastest of {among}** in its cell"
    others = {name: row[f"winner_{name}"] for name in IMPLEMENTATION}
    winner = row["winner_layout"] or "the winner"
    winner += phrase(others, [name for name, value in others.items() if value != row[name]])
    faster = faster_than(row["winner_lead"], "it")
    return f"Rank {number(row['rank_in_cell'])} of {among} in its cell; {winner} is {faster}"


def elsewhere(runs: int) -> str:
    """The same configuration by other frameworks or versions, on other clusters or accelerators."""
    return f"with the same configuration elsewhere ({count(runs, 'run')})"


def short_name(run: Row) -> str:
    """Run directory (file, where a directory holds many runs) and attempt; file and line of a published one."""
    directory = str(run["run_dir"] or "").rstrip("/").rpartition("/")[2]
    file = str(run["source_path"] or run["run_id"]).rstrip("/").rpartition("/")[2]
    if run["origin"] == "published" and run["line_no"] is not None:
        return f"{file}, line {number(run['line_no'])}"
    name = file if directory in ("", run["sweep"]) else directory
    return f"{name}, attempt {number(run['attempt'])}" if (run["attempt"] or 1) > 1 else name
