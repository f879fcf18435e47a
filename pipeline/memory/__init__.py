"""GPU memory artefacts: allocator snapshots, profiler timelines, allocator statistics, nvidia-smi and DCGM samples.

Bytes in, rows of the memory tables out; nothing here opens a file except `limited`, which starts the worker that
reads snapshots. A new format is one module and one line in `sources`.
"""
