"""GPU memory artefacts: allocator snapshots, profiler timelines, allocator statistics, nvidia-smi and DCGM samples.

Bytes in, rows of the memory tables out. Nothing here opens a file; `isolation` reads snapshots in child processes.
A new format is one module and one line in `sources`.
"""
