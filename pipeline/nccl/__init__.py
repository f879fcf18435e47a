"""What the network did: NCCL and RCCL debug output, nccl-tests tables, watchdog lines, flight recorder dumps.

A map and a fold, as in `pipeline.logs`. The map (`lines.scan.scan_parts`) turns blocks of whole lines of any files into
`facts.Facts` and never looks beyond them. INFO lines of the regular form are cut as columns (`lines.regular_lines`),
messages in other lines are found one line at a time (`lines.irregular_lines`); then each kind of message is read at
once (`lines.info_kinds`). `Facts.merge` puts blocks together in any number; the fold (`tables.nccl_tables`) turns the
facts of all files of a batch into rows at once. Bytes in, frames out: no file is opened here.

NVIDIA does not document this output and changes it with every release, so nothing here fails on a line it does not
know: such lines are counted. Line formats are those of the NCCL sources v2.3.5 to v2.30.7 (src/init.cc, enqueue.cc,
debug.cc, graph/, transport/), nccl-tests (src/util.cu, common.cu) and PyTorch (ProcessGroupNCCL.cpp).
"""
