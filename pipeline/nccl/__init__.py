"""What the network did: NCCL and RCCL debug output, nccl-tests tables, watchdog lines, flight recorder dumps.

A map and a fold, as in `pipeline.logs`. The map (`scan.scan_parts`) turns blocks of whole lines of any files into
`facts.Facts` and never looks beyond them: regular lines as whole columns (`info`, `collectives`), odd ones one by one
(`line_reader`), both with the same result. `Facts.merge` puts blocks together in any number; the fold
(`tables.nccl_tables`) turns the facts of all files of a batch into rows at once. One module per thing that NCCL prints.
Bytes in, frames out: no file is opened here.

NVIDIA does not document this output and changes it with every release, so nothing here fails on a line it does not
know: such lines are counted. Line formats are those of the NCCL sources v2.3.5 to v2.30.7 (src/init.cc, enqueue.cc,
debug.cc, graph/, transport/), nccl-tests (src/util.cu, common.cu) and PyTorch (ProcessGroupNCCL.cpp).
"""

NCCL_VERSION = 14
"""Raise it when the same file would yield other rows; known files are then read again."""
