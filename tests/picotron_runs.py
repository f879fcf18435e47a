"""Hand-made picotron run directories: a factory taking overrides, for tests that need real files on disk."""

from __future__ import annotations

import json
from pathlib import Path


def picotron_run(
    parent: Path,
    *,
    name: str | None = None,
    dp: int = 2,
    tp: int = 1,
    pp: int = 1,
    mbs: int = 1,
    gas: int = 4,
    seq_len: int = 128,
    steps: int = 6,
    planned: int = 6,
    job: int = 1001,
    tokens_per_s: float = 4000.0,
    status: str = "completed",
    tail: str = "",
) -> Path:
    """Write one run directory as picotron lays it out, and return it."""
    run = parent / (name or f"dp{dp}_tp{tp}_pp{pp}_cp1_mbs{mbs}_ga{gas}_sl{seq_len}")
    run.mkdir(parents=True)
    config = {
        "distributed": {"tp_size": tp, "cp_size": 1, "pp_size": pp, "dp_size": dp, "pp_engine": "1f1b"},
        "model": {"name": "tests/tiny-4m", "num_hidden_layers": 4, "num_attention_heads": 4, "dtype": "bfloat16"},
        "training": {
            "total_train_steps": planned,
            "seq_length": seq_len,
            "micro_batch_size": mbs,
            "gradient_accumulation_steps": gas,
        },
    }
    (run / "config.json").write_text(json.dumps(config))
    world, batch = dp * tp * pp, dp * mbs * gas * seq_len
    lines = [
        f"[default0]:[rank 0] Step: {step:<5d} | Loss: {8 - step / 100:6.4f} | Global batch size: {batch} | "
        f"Tokens/s: {tokens_per_s:.2f} | Tokens/s/GPU: {tokens_per_s / world:.2f} | Tokens: {batch * step} | "
        f"MFU: 1.23% | Memory usage:   1.75GB"
        for step in range(1, steps + 1)
    ]
    (run / f"log_{job}.out").write_text("\n".join(lines) + "\n" + tail)
    (run / "status.txt").write_text(status)
    return run


OOM_TAIL = (
    "[default0]:[rank0]: Traceback (most recent call last):\n"
    "[default0]:[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 79.10 GiB of which 1.02 GiB is free.\n"
)
