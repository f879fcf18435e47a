"""Sentences of the page on a node, each computed from its rows."""

from __future__ import annotations

from collections.abc import Sequence

from sweepscope.dashboard.format.numbers import between, count, moment, number, part_of
from sweepscope.dashboard.queries.query import Row

TITLE = "Nodes"
NONE = "**No run, line or benchmark of this store names a node.**"
HOW_TO_NAME = (
    "Nodes are known from the scheduler's tables (sacct, scontrol), from launchers' lines, and from NCCL's output with "
    "NCCL_DEBUG=INFO. Ingest one of them beside the logs."
)
HOW_TO_READ = (
    "**How to read it.** A run on several nodes counts on each of them, so a high rate alone is weak evidence. What "
    "names the node weighs more: the rank that failed first, stragglers, benchmarks that are slow wherever it takes "
    "part, memory that other processes held.",
    "**What it hides.** A node that only failures name is in no rate. Of many nodes, one in forty fails more often by "
    "chance. Nodes of two clusters with the same name are one here. Lines on GPU memory and time limits are the "
    "layout's doing and do not count against a node.",
)
_NAMED = 4


def reasons(row: Row) -> list[str]:
    """The evidence against a node, in words; the gravest first."""
    found = []
    if row["slow_findings"]:
        found.append(f"slow in {count(row['slow_findings'], 'set')} of nccl-tests")
    if row["runs_straggling"]:
        found.append(f"a straggler in {count(row['runs_straggling'], 'run')}")
    if row["runs_occupied"]:
        found.append(f"GPU memory held by others in {count(row['runs_occupied'], 'run')}")
    if row["runs_naming"]:
        found.append(f"named by {count(row['runs_naming'], 'failure')}")
    if row["is_failing_more"]:
        found.append("fails more often than others")
    return found


def list_answer(rows: Sequence[Row]) -> str:
    """Which nodes have something against them."""
    if len(rows) == 1:
        return f"{answer(rows[0])} It is the only node here, so there is none to compare it with."
    suspects = [row for row in rows if row["is_suspect"]]
    if not suspects:
        return f"**No evidence against any of {count(len(rows), 'node')}.**"
    named = ", ".join(row["host"] for row in suspects[:_NAMED])
    more = f" and {len(suspects) - _NAMED} more" if len(suspects) > _NAMED else ""
    return f"**Check {named}{more}** first: there is evidence against {len(suspects)} of {count(len(rows), 'node')}."


def answer(row: Row) -> str:
    """The evidence against one node, and how its runs ended."""
    found = reasons(row)
    verdict = f"**{row['host']}: {'; '.join(found)}.**" if found else f"**No evidence against {row['host']}.**"
    return f"{verdict} {rate(row)}"


def rate(row: Row) -> str:
    """How many runs failed on the node, with the interval, and elsewhere."""
    if not row["runs_judged"]:
        return "No run is known to have been on it." if not row["runs_tried"] else "None of its runs can be judged."
    text = f"{number(row['runs_failed'])} of {count(row['runs_judged'], 'run')} on it failed"
    ends = between((row["failure_rate_low"], row["failure_rate_high"]))
    elsewhere = row["failure_rate_elsewhere"]
    other = "" if elsewhere is None else f"; elsewhere {part_of(elsewhere)}"
    return f"{text} (95 % interval {ends}{other})."


def meta(row: Row) -> str:
    """When the node was in use."""
    if row["first_run_at"] is None:
        return "when it was in use is not logged"
    return f"in use from {moment(row['first_run_at'])} to {moment(row['last_run_at'])}"


def figures(row: Row) -> list[tuple[str, str, str]]:
    """Label, value and note of the page's figures."""
    judged = row["runs_judged"]
    share = part_of(row["failure_rate"]) if judged else "–"
    elsewhere = row["failure_rate_elsewhere"]
    shown = [
        ("Runs on it", number(row["runs_tried"]), f"{number(judged)} completed or failed"),
        ("Failed", share, "" if elsewhere is None else f"elsewhere {part_of(elsewhere)}"),
        ("Failures that name it", number(row["runs_naming"]), "hang, infrastructure, crash or no reason"),
    ]
    findings = [
        ("Straggler on it", number(row["runs_straggling"]), "runs"),
        ("Slow in nccl-tests", number(row["slow_findings"]), "wherever it takes part"),
        ("GPUs held by others", number(row["runs_occupied"]), "runs that met them"),
    ]
    return shown + [figure for figure in findings if figure[1] != "0"]
