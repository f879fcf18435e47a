"""Closed vocabularies of plans."""

from __future__ import annotations

PLAN_PURPOSE: dict[str, str] = {
    "best": "find the fastest layout of a model on a number of nodes",
    "scaling": "find how the best layouts scale over node counts with the batch kept",
    "ablation": "find what each choice of the best layout is worth: one knob turned at a time",
    "memory": "find where memory ends: layouts that may or may not fit",
}

PLAN_OUTCOME: dict[str, str] = {
    "completed": "a run of it reached its last step",
    "running": "a run of it is still being written",
    "failed": "every run of it ended otherwise",
    "missing": "no run of it was read yet",
}

PLAN_MATCH: dict[str, str] = {
    "name": "its name is in the path of the log or is that of the job",
    "layout": "the run has its cell, framework and layout",
}
