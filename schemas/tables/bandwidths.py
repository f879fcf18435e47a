"""Bandwidths: nccl-tests tables, published figures, data sheets."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import flag, integer, number, text
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.vocab.nccl import OP_SOURCE

NCCL_BENCH = Table(
    name="nccl_bench",
    description="Rows of nccl-tests tables: bandwidth and time by size.",
    grain="one row per row of a table",
    primary_key=("source_path", "line_no"),
    columns=columns(
        "source_path run_dir",
        integer("table_no", "count", "number of the table within its file, from 1", minimum=1),
        "op",
        text("op_source", "how the benchmarked operation is known; NULL where it is not", OP_SOURCE),
        "nranks num_nodes accelerator message_bytes element_count datatype reduction root",
        number("time_s", "s", "time per operation, out of place", minimum=0),
        number("algbw_bytes_per_s", "bytes/s", "message_bytes / time_s, as printed", minimum=0),
        number("busbw_bytes_per_s", "bytes/s", "algorithm bandwidth x the operation's factor, as printed", minimum=0),
        number("wrong_elements", "count", "wrong elements (old versions: largest error); NULL: not checked", minimum=0),
        number("in_place_time_s", "s", "time per operation, in place", minimum=0),
        number("in_place_algbw_bytes_per_s", "bytes/s", "message_bytes / in_place_time_s, as printed", minimum=0),
        number("in_place_busbw_bytes_per_s", "bytes/s", "the same times the operation's factor, as printed", minimum=0),
        number("in_place_wrong_elements", "count", "wrong elements in place; NULL when not checked", minimum=0),
        "line_no",
    ),
)

PUBLISHED_BANDWIDTHS = Table(
    name="published_bandwidths",
    description="Bandwidths of collectives that others published, to hold one's own against.",
    grain="one row per source, operation, size, nodes and ranks",
    primary_key=("source_id", "op", "message_bytes", "num_nodes", "nranks"),
    layer="reference",
    replaced_by="source_id",
    columns=columns(
        "source_id source_title source_url table_or_figure accelerator op message_bytes num_nodes nranks",
        number("bandwidth_bytes_per_s", "bytes/s", "bandwidth of a collective as published, the median", minimum=0),
        number("bandwidth_p5_bytes_per_s", "bytes/s", "its 5th percentile", minimum=0),
        number("bandwidth_p95_bytes_per_s", "bytes/s", "its 95th percentile", minimum=0),
        "notes source_path line_no",
    ),
)

ACCELERATOR_LINKS = Table(
    name="accelerator_links",
    description="What an accelerator's memory, its links within a node and its share of the network can carry.",
    grain="one row per accelerator",
    primary_key=("accelerator",),
    layer="reference",
    replaced_by="accelerator",
    columns=columns(
        "accelerator",
        number("memory_bytes_per_s", "bytes/s", "bandwidth of the accelerator's memory", minimum=0),
        number("link_bytes_per_s", "bytes/s", "bandwidth of its links within a node, one direction", minimum=0),
        number("network_bytes_per_s", "bytes/s", "its share of a usual cluster's network, one direction", minimum=0),
        integer("usual_gpus_per_node", "count", "accelerators of a usual host", minimum=1),
        integer("usual_gpus_per_domain", "count", "accelerators that links join: a host's, or a rack's", minimum=1),
        integer("direct_peers", "count", "accelerators that its links lead to without a switch; NULL: none", minimum=1),
        integer("switched_from", "count", "accelerators of a domain from which on switches join them", minimum=1),
        integer("processors", "count", "streaming multiprocessors or compute units of one accelerator", minimum=1),
        number("board_power_w", "W", "power of the board at its default limit; NULL where it is not known", minimum=0),
        flag("has_multicast", "switches between the links can reduce (NVLink SHARP)"),
        "source_url notes",
    ),
)
