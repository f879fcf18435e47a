"""Patterns of lines by which a script of any framework says that it is done.

They count behind the last step only (`pipeline.logs.runs.outcome`): before it, they speak of an epoch, or of the plan.
"""

from __future__ import annotations

from sweepscope.pipeline.logs.evidence.batch_systems import ended

KIND = "finished"
CLOSED = "tracker_closed"

_NAMED = r"(?:INFO|NOTICE|WARNING|main|__main__|root|train(?:er)?|rank ?\d+)[\s:|>-]+"
_LOGGER = rf"(?:\[[^\]]*\]\s*|\d[\d:.,/TZ -]*\s*|{_NAMED}|\S+\.py:\d+\W*|[|>\s-]+)*"
"""What loggers put in front of a line; a number of an epoch is none of it."""
_BEGIN = rf"(?i)^\s*{_LOGGER}[^\w\s]*\s*"
_TRAINING = r"(?:model |(?:pre|fine)-?)?(?:training|tuning)"
_DONE = r"(?:loop |is |has )?(?:completed?|finished|done)\b(?: (?:in|after|at|for|successfully)\b|\W|$)"

_EARLY = tuple(
    f"{first}{gap}{last}" for first in ("arly", "ARLY") for gap in " _-" for last in ("stop", "Stop", "STOP")
)
_EARLY += ("arlyStop", "arlystop")
_WHOLE = ("complete", "finished", "done")
_STOPPED = (
    r"(?:no (?:\w+ )?improvement|stopp(?:ed|ing)|since|because|"
    r"patience (?:was )?(?:reached|exhausted|exceeded|ran out)|"
    r"criteri(?:on|a) (?:is |was |were )?(?:met|reached|satisfied))\b"
)
"""Why training stops early, behind the words for it."""

PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        KIND,
        (
            *("raining complete", "raining finished", "raining done", "raining is complete", "raining is finished"),
            *("raining is done", "raining has finished", "raining has completed", "raining loop complete"),
            *("RAINING COMPLETE", "RAINING FINISHED", "raining Complete", "raining Finished", "uning complete"),
            *("uning finished", "inished training", "ompleted training", "inished Training"),
        ),
        rf"{_BEGIN}{_TRAINING} {_DONE}|"
        rf"{_BEGIN}(?:successfully )?(?:finished|completed) {_TRAINING}\b",
    ),
    (
        KIND,
        ("topping early", "topping_early", "topped early", *_EARLY),
        r"(?i)\bstopp(?:ing|ed)[ _]early\b|\bearly[ _-]?stop(?:ping|ped)?(?: was)?[ :_]{1,2}(?:triggered|activated)\b|"
        rf"{_BEGIN}early[ _-]?stop(?:ping|ped)? (?:after|at|in) (?:epoch|step|iter\w*) \d|"
        # A label, or the last words: `[EARLY STOP] no gain in 5 epochs`, Keras's `Epoch 11: early stopping`. One that
        # counts is none: `EarlyStopping counter: 3 out of 5`.
        r"(?i)\[early[ _-]?stop(?:ped)?\]\W*(?:[abd-z0-9]|c[^o]|$)|"
        r"(?i)(?:^|[^\w\s]\s*|\d\s+)early[ _-]?stopp(?:ing|ed)\W*$|"
        rf"(?i)\[early[ _-]?stopping\]\W*{_STOPPED}|{_BEGIN}early[ _-]?stop(?:ping|ped)?\W+{_STOPPED}",
    ),
    # Of the whole, with what it reached: `run complete @ step 9000`. A bare `Run completed` may be one of a sweep's.
    (
        KIND,
        tuple(f"{of}{gap}{word}" for of in ("un", "ob", "xperiment") for gap in (" ", " is ") for word in _WHOLE),
        rf"{_BEGIN}(?:the )?(?:run|job|experiment) (?:is )?(?:complete|finished|done) ?[@:|,;(-] ?.*\b"
        r"(?:step|iter(?:ation)?|epoch|update)s?\b\W{0,3}\d",
    ),
    (
        KIND,
        ("inished in ", "ompleted in ", "one in ", "inished after ", "ompleted after "),
        rf"{_BEGIN}(?:all |run |job |script |everything )?(?:is )?(?:finished|completed|done) (?:in|after) "
        r"\d[\d.,:]* ?(?:s|secs?|seconds|m|mins?|minutes|h|hours)?\W*$",
    ),
    # A script's own last line, with what it reached: `done. best val loss 2.31`; `done.` alone may be a checkpoint's.
    (
        KIND,
        ("one. ", "one! ", "one, ", "one: ", "one | ", "inished. ", "inished! ", "inished, ", "ll done", "LL DONE"),
        rf"{_BEGIN}all done\b|"
        rf"{_BEGIN}(?:done|finished) ?[.!,:|] (?:the )?(?:best|total|final|overall|elapsed|wall|max)\b",
    ),
    # What runs the process, of its end: Determined, Docker compose, SkyPilot, shells (also with `set -x`); submitit
    # (core/submission.py); SageMaker's toolkit (sagemaker_training/entry_point.py, files.py).
    (
        KIND,
        (
            *("with a zero exit code", "exited with code 0", "(status: SUCCEEDED)"),
            *("finished, exit 0", "done, exit 0", "completed, exit 0", "+ exit 0"),
            *("Job completed successfully", "Exiting after successful completion", "Reporting training SUCCESS"),
        ),
        r"\bexited successfully with a zero exit code\b|^\s*[\w.-]+ exited with code 0\s*$|\(status: SUCCEEDED\)|"
        r"\b(?:finished|done|completed), exit 0\s*$|^\s*\++ exit 0\s*$|"
        r"^submitit INFO \(.*\) - (?:Job completed successfully|Exiting after successful completion)\s*$|"
        r"\bINFO +Reporting training SUCCESS\s*$",
    ),
    (
        KIND,
        ("训练完成", "训练结束", "训练完毕", "训练已完成", "微调完成"),
        rf"{_BEGIN}(?:模型)?(?:训练|微调)已?(?:完成|结束|完毕)",
    ),
    # contribs/seff of Slurm, and sacct's rows, where a job's epilog prints them; the report that LSF appends.
    (
        KIND,
        ("State: COMPLETED", " COMPLETED ", "|COMPLETED|", "Successfully completed."),
        rf"{ended('COMPLETED')}|^\s?Successfully completed\.\s*$",
    ),
    # The last line of GNU time's `-v`: a command that a signal ended has this, too, below a line that names the signal.
    (KIND, ("Exit status: 0",), r"^\s*Exit status: 0$"),
    # wandb/sdk/wandb_run.py _footer_exit_status_info, up to 0.16: of a process whose exit code is 0.
    (KIND, ("process to finish... ",), r"wandb: Waiting for W&B process to finish\.\.\. .{0,20}\(success\)"),
    # wandb/sdk/wandb_run.py footer, as the process exits, in whatever way.
    (CLOSED, ("Find logs at: ",), r"wandb:\s+Find logs at: \S"),
)
"""(kind of vocab.EVENT_KIND, literals of which a line holds one, expression): arguments of `patterns.Pattern`."""
