"""Other estimators on the same question, where they can be run: memory and step time of 175B on 3,072 accelerators.

`SWEEPSCOPE_PEERS` names a Python that has them (they want other versions of packages than ours), for example
`python3 -m venv /tmp/peers && /tmp/peers/bin/pip install llm-analysis` and `SWEEPSCOPE_PEERS=/tmp/peers/bin/python`.
Calculon is not on PyPI (the package of that name is another thing): install it from its repository into the same place.
"""

from __future__ import annotations

import os
import subprocess
import sys

LLM_ANALYSIS = """
import logging, os, sys, time
from llm_analysis import analysis
from llm_analysis.config import (
    ParallelismConfig, get_dtype_config_by_name, get_gpu_config_by_name, get_model_config_by_name,
)
logging.disable(logging.CRITICAL)
model, card = get_model_config_by_name("megatron-lm-175b"), get_gpu_config_by_name("a100-sxm-80gb")
dtype = get_dtype_config_by_name("w16a16e16")
stdout, sys.stdout = sys.stdout, open(os.devnull, "w")
count, begin = 0, time.process_time()
while time.process_time() - begin < 3:
    for tp, pp in ((1, 8), (2, 8), (4, 8), (8, 8), (8, 16), (8, 4), (4, 16), (8, 12)):
        mesh = ParallelismConfig(tp_size=tp, pp_size=pp, dp_size=3072 // (tp * pp))
        one = analysis.LLMAnalysis(model, card, dtype, mesh, flops_efficiency=0.5)
        one.training(batch_size_per_gpu=1, global_batch_size=1536, seq_len=2048)
        count += 1
stdout.write(str(count / (time.process_time() - begin)))
"""


def llm_analysis_rate() -> tuple[float | None, str]:
    """(layouts per CPU second, "") of llm-analysis 0.2, or (None, why it was not run)."""
    python = os.environ.get("SWEEPSCOPE_PEERS", sys.executable)
    ran = subprocess.run([python, "-c", LLM_ANALYSIS], check=False, capture_output=True, text=True, timeout=120)
    if ran.returncode:
        reason = (ran.stderr.strip().splitlines() or ["no reason told"])[-1]
        return None, f"not run: {reason} (set SWEEPSCOPE_PEERS)"
    return float(ran.stdout.split()[-1]), ""
