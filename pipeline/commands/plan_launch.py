"""`sweepscope plan launch`: the files that start the runs of a plan."""

from __future__ import annotations

import argparse
import difflib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweepscope.pipeline.commands.output import note, say_result, table
from sweepscope.pipeline.errors import UsageError

if TYPE_CHECKING:
    from sweepscope.pipeline.launch.framework import Framework
    from sweepscope.pipeline.store.home import Home

SUBMIT = "submit.sh"
_EXAMPLE = "Example: sweepscope plan launch plan-3f9a1c --framework nanotron --out runs"


def add_launch(actions: Any) -> argparse.ArgumentParser:
    """The action's parser, added to those of the verb."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "launch",
        help="write the launch files of a plan's runs",
        description="Write a folder per run of the plan that no run fills yet: the framework's configuration, "
        "launch.sh (torchrun), job.sbatch (Slurm), jobset.yaml (Kubernetes) and a sweepscope.toml with what logs do "
        "not say; and submit.sh, which submits all to Slurm in the plan's order.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("plan", metavar="PLAN", help="name of the plan, such as plan-3f9a1c")
    parser.add_argument("--framework", default=argparse.SUPPRESS, help="whose files: " + ", ".join(_names()))
    parser.add_argument("--out", metavar="DIR", help="folder to write to; a folder per run is made in it")
    parser.add_argument("--all", action="store_true", help="write those of runs that are there already, too")
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="write files for a trial on this machine's CPU (gloo): whether they start, not how fast they are",
    )
    parser.add_argument("--force", action="store_true", help="write over files that differ")
    return parser


def _names() -> tuple[str, ...]:
    from sweepscope.pipeline.launch.registry import FRAMEWORKS

    return tuple(FRAMEWORKS)


def launcher_of(name: str | None) -> Framework:
    """The framework of that name. Raises UsageError with the nearest."""
    from sweepscope.pipeline.launch.registry import FRAMEWORKS

    if name is None:
        raise UsageError(f"the following arguments are required: --framework. There are: {', '.join(FRAMEWORKS)}.")
    if name not in FRAMEWORKS:
        near = difflib.get_close_matches(name, FRAMEWORKS, n=2)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"There are: {', '.join(FRAMEWORKS)}."
        raise UsageError(f"No launch files for {name}. {hint}")
    return FRAMEWORKS[name]


def run_launch(args: argparse.Namespace) -> int:
    """Write the files; the exit code."""
    from sweepscope.pipeline.commands.plan_status import statuses
    from sweepscope.pipeline.ingest.plans import plan_of
    from sweepscope.pipeline.launch.planned import CPU
    from sweepscope.pipeline.store.home import Home

    home = Home.resolve(args.home, for_writing=False)
    launcher = launcher_of(args.framework)
    if not args.out:
        raise UsageError(f"the following arguments are required: --out. {_EXAMPLE}")
    filled = {
        row["planned_run_id"]
        for row in statuses(home, args.plan)
        if row["plan_outcome"] != "missing" and (args.cpu or not row["is_trial"])
    }
    rows = [
        {**row, "accelerator": CPU} if args.cpu else row
        for row in plan_of(home, args.plan).iter_rows(named=True)
        if args.all or row["planned_run_id"] not in filled
    ]
    if not rows:
        raise UsageError(f"Every run of {args.plan} is there already. --all writes their files again.")
    refused = [(row["planned_run_id"], _refusal(launcher, row)) for row in rows]
    wanted = [row for row, (_, reason) in zip(rows, refused, strict=True) if reason is None]
    if not wanted:
        raise UsageError(f"{launcher.name} can run nothing of {args.plan}: {refused[0][1]}. Plan with --framework.")
    folder = Path(args.out)
    written = _write(folder, wanted, launcher, is_forced=args.force)
    if not args.cpu:
        _remember(home, wanted, launcher)
    left_out = {name: reason for name, reason in refused if reason is not None}
    value = {"plan_id": args.plan, "framework": launcher.name, "out": str(folder), "runs": written, "refused": left_out}
    lines = [(name, ", ".join(files)) for name, files in written.items()]
    lines += [(name, f"not written: {reason}") for name, reason in left_out.items()]
    say_result(value, table(lines), as_json=args.json)
    note(f"{launcher.name}: {launcher.about}")
    note(f"When they ran: sweepscope ingest {folder} && sweepscope plan status {args.plan}")
    return 0


def _refusal(launcher: Framework, row: dict[str, Any]) -> str | None:
    """Why the framework cannot run a planned run where it is to run."""
    from sweepscope.pipeline.launch.planned import CPU

    on_cpu = launcher.refusal_on_cpu(row["num_gpus"]) if row["accelerator"] == CPU else None
    return on_cpu or launcher.refusal(row)


def _write(folder: Path, rows: list[dict[str, Any]], launcher: Framework, *, is_forced: bool) -> dict[str, list[str]]:
    """Files of each run by its name. Raises UsageError, having written nothing, where other content is in the way."""
    from sweepscope.pipeline.launch.jobs import SBATCH, launch_files
    from sweepscope.pipeline.launch.planned import Planned

    texts: dict[Path, str] = {}
    written: dict[str, list[str]] = {}
    for row in rows:
        name = row["planned_run_id"]
        files = launch_files(Planned.of(row), launcher, _settings(row))
        written[name] = sorted(files)
        texts |= {folder / name / file: text for file, text in files.items()}
    submit = ["#!/usr/bin/env bash", "# In the plan's order: the most informative run first.", "set -eu"]
    submit.append('cd "$(dirname "${BASH_SOURCE[0]}")"')
    submit += [f"(cd {shlex.quote(name)} && sbatch {SBATCH})" for name in written]
    texts[folder / SUBMIT] = "\n".join([*submit, ""])
    in_the_way = [path for path, text in texts.items() if path.name != SUBMIT and _differs(path, text)]
    if in_the_way and not is_forced:
        more = f" and {len(in_the_way) - 1} more" if len(in_the_way) > 1 else ""
        raise UsageError(f"Will not overwrite {in_the_way[0]}{more}. Give another --out, or --force.")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return written


def _differs(path: Path, text: str) -> bool:
    return path.exists() and path.read_bytes() != text.encode()


def _settings(row: dict[str, Any]) -> dict[str, str]:
    """Further variables of a planned run; torch's allocator goes by two names."""
    conf = row["allocator_conf"]
    return {} if conf is None else {"PYTORCH_CUDA_ALLOC_CONF": conf, "PYTORCH_ALLOC_CONF": conf}


def _remember(home: Home, rows: list[dict[str, Any]], launcher: Framework) -> None:
    """The framework of planned runs that had none: runs without their names are matched by it."""
    import polars as pl

    from sweepscope.pipeline.ingest.plans import add_planned
    from sweepscope.schemas.tables.plans import PLANNED_RUNS

    changed = [{**row, "framework": launcher.framework} for row in rows if row["framework"] is None]
    if changed:
        add_planned(home, PLANNED_RUNS.conform(pl.DataFrame(changed, schema=PLANNED_RUNS.polars_schema)))
