"""The tables of NCCL debug output, nccl-tests, hangs and flight recorder dumps."""

from __future__ import annotations

import polars as pl

from schemas.core.column import Column
from schemas.core.table import Table

NCCL_FILES = Table(
    name="nccl_files",
    description="What each file with NCCL output says as a whole: versions, size, transports, warnings, benchmarks.",
    grain="one row per file with NCCL content",
    primary_key=("source_path",),
    column_names=(
        "source_path", "run_dir", "sweep", "origin", "nccl_flavour", "nccl_version", "nranks_max", "num_nodes",
        "num_communicators", "num_channels", "transports", "networks", "num_warns", "first_warn", "num_hangs",
        "has_coll", "has_tuning", "coll_calls", "total_bytes", "init_time_s", "bench_rows", "bench_tables",
        "bench_avg_busbw", "nccl_env", "nccl_lines", "nccl_lines_other", "nccl_lines_damaged",
    ),
)  # fmt: skip

_INIT_PARTS = (
    "init_kernels_s", "init_alloc_s", "init_bootstrap_s", "init_allgathers_s", "init_topo_s", "init_graphs_s",
    "init_connections_s", "init_rest_s",
)  # fmt: skip

NCCL_COMMUNICATORS = Table(
    name="nccl_communicators",
    description="Communicators: size, channels, transports and how long they took to come up.",
    grain="one row per file and communicator",
    primary_key=("source_path", "comm_index"),
    column_names=(
        "source_path", "run_dir", "comm_index", "comm_hash", "comm_api", "parent_comm_index", "split_color", "nranks",
        "ranks_seen", "is_membership_exact", "num_nodes", "ring_channels", "coll_channels", "collnet_channels",
        "nvls_channels", "p2p_channels", "p2p_channels_per_peer", "network", "transports", "ring_order", "init_state",
        "init_time_s", "init_slowest_rank", "init_bootstrap_s", "coll_calls", "line_no",
    ),
)  # fmt: skip

NCCL_RANKS = Table(
    name="nccl_ranks",
    description="Ranks of communicators: where each ran, how long its initialisation took and on what.",
    grain="one row per file, communicator and rank",
    primary_key=("source_path", "comm_index", "rank"),
    column_names=(
        "source_path", "run_dir", "comm_index", "rank", "nranks", "host", "pid", "cuda_dev", "nvml_dev", "bus_id",
        "comm_pointer", "init_state", "init_time_s", *_INIT_PARTS, "coll_calls", "last_op_count", "line_no",
    ),
)  # fmt: skip

NCCL_LINKS = Table(
    name="nccl_links",
    description="Connections between ranks and the transport each uses.",
    grain="one row per file, communicator, pair of ranks, end and transport",
    primary_key=("source_path", "line_no", "comm_index", "rank_from", "rank_to", "direction", "transport"),
    nullable_key=("comm_index", "direction"),
    column_names=(
        "source_path", "run_dir", "comm_index", "rank_from", "rank_to", "direction", "transport", "net_devices",
        "link_channels", "line_no",
    ),
)  # fmt: skip

NCCL_GRAPHS = Table(
    name="nccl_graphs",
    description="Rings and trees that NCCL laid over the ranks: who sends to whom in which channels.",
    grain="one row per file, communicator, graph and edge; a rank and the next one in a ring, or its parent in a tree",
    primary_key=("source_path", "comm_index", "graph", "rank_from", "rank_to"),
    column_names=(
        "source_path", "run_dir", "comm_index", "graph", "rank_from", "rank_to", "num_graph_channels",
        "graph_channels", "line_no",
    ),
)  # fmt: skip

NCCL_DEVICES = Table(
    name="nccl_devices",
    description="Network devices that NCCL found on each host; a row without a device says that it found none.",
    grain="one row per file, host, network and device",
    primary_key=("source_path", "host", "net_kind", "net_device", "device_name"),
    nullable_key=("net_device", "device_name"),
    column_names=(
        "source_path", "run_dir", "host", "net_kind", "net_device", "device_name", "device_port", "link_layer",
        "line_no",
    ),
)  # fmt: skip

NCCL_COLLECTIVES = Table(
    name="nccl_collectives",
    description="Collectives and sends by size, added up from COLL lines.",
    grain="one row per file, communicator, operation, type, count and root; per rank and peer for Send and Recv",
    # The first line alone is not enough: two calls may be glued into one line.
    primary_key=(
        "source_path", "line_no", "comm_index", "comm_pointer", "nranks", "op", "datatype", "element_count",
        "reduction", "root", "rank",
    ),
    nullable_key=("comm_index", "comm_pointer", "nranks", "datatype", "reduction", "root", "rank"),
    column_names=(
        "source_path", "run_dir", "comm_index", "comm_pointer", "nranks", "op", "datatype", "element_count",
        "reduction", "root", "rank", "ranks_calling", "calls", "collectives", "message_bytes", "total_bytes", "line_no",
    ),
)  # fmt: skip

NCCL_TUNING = Table(
    name="nccl_tuning",
    description="Which algorithm, protocol and channels NCCL chose for which size.",
    grain="one row per file, operation, size and choice",
    primary_key=("source_path", "line_no", "op", "message_bytes", "algorithm", "protocol", "tuning_channels"),
    nullable_key=("op", "tuning_channels"),
    column_names=(
        "source_path", "run_dir", "op", "message_bytes", "algorithm", "protocol", "tuning_channels", "calls", "line_no",
    ),
)  # fmt: skip

NCCL_WARNINGS = Table(
    name="nccl_warnings",
    description="NCCL WARN lines, alike ones together, with what they mean.",
    grain="one row per file and text, digits and addresses aside",
    primary_key=("source_path", "line_no", "text"),
    column_names=(
        "source_path", "run_dir", "warn_class", "severity", "text", "num_lines", "host", "pid", "line_no",
    ),
)  # fmt: skip

NCCL_BENCH = Table(
    name="nccl_bench",
    description="Rows of nccl-tests tables: bandwidth and time by size.",
    grain="one row per row of a table",
    primary_key=("source_path", "line_no"),
    column_names=(
        "source_path", "run_dir", "table_no", "op", "op_source", "nranks", "num_nodes", "accelerator",
        "message_bytes", "element_count", "datatype", "reduction", "root", "time_s", "algbw_bytes_per_s",
        "busbw_bytes_per_s", "wrong_elements", "in_place_time_s", "in_place_algbw_bytes_per_s",
        "in_place_busbw_bytes_per_s", "in_place_wrong_elements", "line_no",
    ),
)  # fmt: skip

NCCL_HANGS = Table(
    name="nccl_hangs",
    description="Collectives that timed out, who reported them, who stayed silent, and who is the suspect.",
    grain="one row per distinct timed-out collective (operation, sequence number, process group, sizes, timeout)",
    primary_key=("source_path", "line_no", "op", "seq", "process_group", "numel_in", "numel_out", "timeout_ms"),
    column_names=(
        "source_path", "run_dir", "op", "seq", "process_group", "numel_in", "numel_out", "timeout_ms", "ran_for_ms",
        "num_ranks", "ranks_reporting", "ranks_silent", "ranks_elsewhere", "suspect", "suspect_reason",
        "is_first", "evidence_source", "line_no",
    ),
    nullable_key=("op", "seq", "process_group", "numel_in", "numel_out", "timeout_ms"),
)  # fmt: skip

NCCL_HANG_LINES = Table(
    name="nccl_hang_lines",
    description="Lines that tell of a hang: timeouts, how far each rank had come, and what failed before.",
    grain="one row per line, kind, rank and collective; repetitions of a rank are left out",
    primary_key=("source_path", "line_no", "hang_line_kind", "rank", "op", "seq", "process_group"),
    column_names=(
        "source_path", "run_dir", "hang_line_kind", "rank", "op", "seq", "process_group", "ran_for_ms", "timeout_ms",
        "last_enqueued_seq", "last_completed_seq", "printed_at", "printed_after_s", "text",
        "line_no",
    ),
    nullable_key=("rank", "op", "seq", "process_group"),
)  # fmt: skip

FLIGHT_RECORDS = Table(
    name="flight_records",
    description="Records of PyTorch's flight recorder: which collectives each rank had enqueued, in what state.",
    grain="one row per dump and record",
    primary_key=("source_path", "line_no"),
    column_names=(
        "source_path", "run_dir", "dump_version", "rank", "record_id", "pg_name", "pg_desc", "pg_ranks", "seq",
        "p2p_seq", "op_id", "op", "profiling_name", "is_p2p", "op_state", "is_retired", "input_sizes", "input_dtypes",
        "output_sizes", "output_dtypes", "created_ns", "found_started_ns", "found_completed_ns", "duration_ms",
        "timeout_ms", "last_enqueued_seq", "last_started_seq", "last_completed_seq", "stack", "line_no",
    ),
    overrides=(
        Column("line_no", pl.Int64, "place of the record in the dump, from 1", unit="count", minimum=1),
        Column("op", pl.String, "operation: the recorder's name without the backend (all_reduce, send)"),
    ),
)  # fmt: skip

ALL = (
    NCCL_FILES, NCCL_COMMUNICATORS, NCCL_RANKS, NCCL_LINKS, NCCL_GRAPHS, NCCL_DEVICES, NCCL_COLLECTIVES, NCCL_TUNING,
    NCCL_WARNINGS, NCCL_BENCH, NCCL_HANGS, NCCL_HANG_LINES, FLIGHT_RECORDS,
)  # fmt: skip

PUBLISHED_BANDWIDTHS = Table(
    name="published_bandwidths",
    description="Bandwidths of collectives that others published, to hold one's own against.",
    grain="one row per source, operation, size, nodes and ranks",
    primary_key=("source_id", "op", "message_bytes", "num_nodes", "nranks"),
    column_names=(
        "source_id", "source_title", "source_url", "table_or_figure", "accelerator", "op", "message_bytes", "num_nodes",
        "nranks", "bandwidth_bytes_per_s", "bandwidth_p5_bytes_per_s", "bandwidth_p95_bytes_per_s", "notes",
        "source_path", "line_no",
    ),
    layer="reference",
    replaced_by="source_id",
)  # fmt: skip

ACCELERATOR_LINKS = Table(
    name="accelerator_links",
    description="What an accelerator's memory, its links within a node and its share of the network can carry.",
    grain="one row per accelerator",
    primary_key=("accelerator",),
    column_names=(
        "accelerator", "memory_bytes_per_s", "link_bytes_per_s", "network_bytes_per_s", "usual_gpus_per_node",
        "source_url", "notes",
    ),
    layer="reference",
    replaced_by="accelerator",
)  # fmt: skip

REFERENCE = (PUBLISHED_BANDWIDTHS, ACCELERATOR_LINKS)

NCCL_FINDINGS = Table(
    name="nccl_findings",
    description="What NCCL's output shows to be slower than it could be, or risky: finding, evidence and remedy.",
    grain="one row per rule and file; per host for slow_host, per run or sweep for mixed versions",
    primary_key=("nccl_rule", "source_path", "evidence"),
    column_names=(
        "nccl_rule", "evidence", "remedy", "fact_source", "places", "origin", "sweep", "run_dir", "source_path",
        "line_no",
    ),
    layer="view",
)  # fmt: skip

NCCL_TRAFFIC = Table(
    name="nccl_traffic",
    description="Bytes that each link would have carried had every collective run as a ring; derived, not measured.",
    grain="one row per file, communicator, pair of ranks and basis",
    primary_key=("source_path", "comm_index", "rank_from", "rank_to", "traffic_basis"),
    column_names=(
        "source_path", "comm_index", "rank_from", "rank_to", "host_from", "host_to", "traffic_basis", "link_bytes",
    ),
    layer="view",
)  # fmt: skip

VIEWS = (NCCL_FINDINGS, NCCL_TRAFFIC)
