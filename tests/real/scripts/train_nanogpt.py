"""nanoGPT's own script, from a checkout, on made-up tokens; the losses are those of its model."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path

import numpy as np
from surroundings import Trouble
from truth import Truth

_LENGTH = 32


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--truth", required=True)
    parser.add_argument("--checkout", required=True)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--micro", type=int, default=4)
    parser.add_argument("--gas", type=int, default=1)
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--trouble", default="")
    parser.add_argument("--at", type=int, default=0)
    options = parser.parse_args()
    truth = Truth(
        options.truth,
        "nanogpt",
        num_gpus=1,
        mbs=options.micro,
        gas=options.gas,
        seq_len=_LENGTH,
        steps_planned=options.steps,
    )
    trouble = Trouble(options.trouble, options.at, truth)
    checkout, out = Path(options.checkout).resolve(), Path("out").resolve()
    # The script wants to be started where it lies, and its data below.
    work = Path(options.truth).resolve().with_suffix(".work")
    (work / "data" / "made_up").mkdir(parents=True)
    for name in ("train.py", "model.py", "configurator.py"):
        (work / name).symlink_to(checkout / name)
    tokens = (np.arange(20_000) % 257).astype(np.uint16)
    for part in ("train", "val"):
        tokens.tofile(work / "data" / "made_up" / f"{part}.bin")
    os.chdir(work)
    sys.path.insert(0, str(work))
    import model

    forward, passes = model.GPT.forward, iter(range(1_000_000))

    def witness(self, idx, targets=None):  # type: ignore[no-untyped-def]
        result = forward(self, idx, targets)
        if self.training:
            step, micro = divmod(next(passes), options.gas)
            if micro == 0:
                trouble.after(step)
            if micro == options.gas - 1 and step % options.every == 0:
                truth.step(step, float(result[1]))
        return result

    model.GPT.forward = witness
    settings = {
        "out_dir": out,
        "dataset": "made_up",
        "device": "cpu",
        "compile": False,
        "eval_interval": 8,
        "eval_iters": 1,
        "log_interval": options.every,
        "always_save_checkpoint": False,
        "batch_size": options.micro,
        "gradient_accumulation_steps": options.gas,
        "block_size": _LENGTH,
        "n_layer": 2,
        "n_head": 2,
        "n_embd": 64,
        "max_iters": options.steps,
        "lr_decay_iters": options.steps,
        "warmup_iters": 2,
        "dtype": "float32",
    }
    sys.argv = ["train.py", *(f"--{name}={value}" for name, value in settings.items())]
    runpy.run_path("train.py", run_name="__main__")
    truth.ends("completed")


if __name__ == "__main__":
    main()
