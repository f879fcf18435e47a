"""Clusters that the user describes, so that estimates know what they are made of."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import integer, number, text, time
from sweepscope.schemas.core.table import Table

CLUSTERS = Table(
    name="clusters",
    description="Clusters as the user describes them: `sweepscope cluster add`. Their measured bandwidths are rows of "
    "`nccl_bench` whose file lies below `nccl_tests`.",
    grain="one row per cluster with a name",
    primary_key=("cluster",),
    replaced_by="cluster",
    redefines=("num_nodes",),
    columns=columns(
        "cluster accelerator",
        integer("num_nodes", "count", "hosts that it has", minimum=1),
        "gpus_per_node",
        integer("gpus_per_domain", "count", "accelerators that links join; NULL: the card's usual number", minimum=1),
        integer("nics_per_node", "count", "network cards of one host", minimum=1),
        number("nic_gbit_per_s", "Gbit/s", "what one of them carries in one direction", positive=True),
        text("nccl_tests", "folder or file of its nccl-tests results, as `nccl_bench.source_path` begins"),
        "author",
        time("described_at", "when it was described (UTC)"),
    ),
)
