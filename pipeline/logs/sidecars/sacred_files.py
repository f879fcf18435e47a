"""The `run.json` that Sacred keeps of an experiment: how it ended, and the machine that it ran on.

Format: sacred/observers/file_storage.py (FileStorageObserver), sacred/run.py (the states), sacred/host_info.py
(`gpus`). Its configuration lies beside it in `config.json`, its values in `metrics.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sweepscope.pipeline.logs.sidecars.run_files import beside, mapping

_ENDED = {"COMPLETED": "completed", "FAILED": "fail", "INTERRUPTED": "cancelled", "TIMEOUT": "timeout"}
"""States of a run that has ended, as a trainer's status file has them."""


def read_run(text: str) -> Mapping[str, str]:
    """Status, accelerator and GPUs of the node of an experiment. Raises ValueError for other JSON."""
    run = mapping(json.loads(text))
    if not isinstance(run.get("experiment"), dict) or "status" not in run or "heartbeat" not in run:
        raise ValueError("not the record of an experiment of Sacred")
    ended = _ENDED.get(str(run["status"]))
    return {**_machine(run.get("host")), **({"status_file": ended} if ended else {})}


def _machine(host: Any) -> dict[str, str]:
    """The GPUs of a machine, where they are of one model."""
    found = host.get("gpus") if isinstance(host, dict) else None
    gpus = found.get("gpus") if isinstance(found, dict) else None
    models = [str(gpu.get("model")) for gpu in gpus if isinstance(gpu, dict)] if isinstance(gpus, list) else []
    return {"accelerator": models[0], "gpus_per_node": str(len(models))} if len({*models}) == 1 else {}


SACRED = beside(read_run, "run.json")
