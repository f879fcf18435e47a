"""A made-up trainer for tests of dialect files: what it prints, and the file that says so."""

from __future__ import annotations

DIALECT = '''\
name = "acme"
signature = ["[acme-trainer]"]

[[step]]
line = """step {step}/{steps_planned} | loss {loss} | {step_time:ms} | {tokens_per_s:human} tok/s
    {?| gnorm {grad_norm}?} | mem {mem_reserved:GiB}"""

[[setting]]
line = "tensor parallel = {tp}"

[[setting]]
line = "peak memory: {mem_peak_allocated}"

[[arguments]]
line = "arg {name} = {value}"
columns = { micro_batch = "mbs", dtype = "precision" }

[[event]]
kind = "training_end"
line = "training done"

[[file]]
name = "run.yaml"
requires = ["parallel"]
columns = { "parallel.pp" = "pp", "model.name" = "model" }
'''

LOG = """\
2026-01-01 10:00:00 [acme-trainer] starting on 16 GPUs
tensor parallel = 8
arg micro_batch = 4
arg dtype = 'bf16'
step 1/3 | loss  9.25 | 1,412.0 ms | 13.8K tok/s | mem 41.5GiB
step 2/3 | loss 8.125 | 412.5ms | 1.1M tok/s | gnorm 1.25 | mem  41.5 GiB
step 3/3 | loss 7.5 | 412.5ms | N/A tok/s | mem 42GiB
peak memory: 43.5GiB
2026-01-01 10:10:00 training done
"""

CONFIG = "parallel:\n  pp: 2\nmodel:\n  name: acme-7b\n"
