"""Run a list of trainings on one GPU, one after the other, each in a folder of its own with its console output.

`python sweep.py LIST OUT SECONDS`: LIST is a JSON list of `{"name", "script", "arguments", "environment"}`; `script` is
`train`, `train_trainer`, or a command. What does not fit the seconds is left out and named. PyTorch is imported once,
and each training is a fork of this process, before any has touched the GPU.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_SLOW_TO_IMPORT = ("torch._dynamo", "torch._inductor", "torch.distributed.fsdp", "torch.profiler", "train_trainer")
"""What each fork would import for itself otherwise, for seconds."""

LIMIT_S = 60
"""A training that takes longer is ended."""


def run(training: dict[str, Any], folder: Path) -> int:
    """Start one training and wait for it; its exit status."""
    folder.mkdir(parents=True)
    environment = {**os.environ, **training.get("environment", {})}
    log = (folder / "log.txt").open("wb")
    if isinstance(training["script"], list):
        command = [part.replace("{folder}", str(folder.resolve())) for part in training["script"]]
        where = training.get("directory") or folder
        started = subprocess.Popen(
            command, cwd=where, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return started.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            return started.wait()
    module = importlib.import_module(training["script"])
    child = os.fork()
    if not child:
        status = 1
        try:
            os.chdir(folder)
            os.environ.update(environment)
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            sys.argv = [training["script"] + ".py", *training["arguments"]]
            signal.alarm(LIMIT_S)
            status = module.main(training["arguments"])
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(listed: str, out: str, seconds: str) -> None:
    """Run what fits the time, and write down how each ended."""
    end, folder = time.monotonic() + float(seconds), Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(Path(__file__).parent))
    for name in _SLOW_TO_IMPORT:
        importlib.import_module(name)
    with (folder / "ended.jsonl").open("a") as ended:
        for training in json.loads(Path(listed).read_text()):
            if time.monotonic() > end:
                print("left out:", training["name"])
                continue
            begin = time.monotonic()
            status = run(training, folder / training["name"])
            took_s = time.monotonic() - begin
            print(f"{training['name']}: {status} after {took_s:.1f} s", flush=True)
            ended.write(json.dumps({**training, "status": status, "took_s": round(took_s, 1)}) + "\n")
            ended.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
