"""NCCL debug output: communicators, connections, collectives, warnings; and the views on them."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import flag, integer, number, text
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.vocab.nccl import FLAVOUR, GRAPH, LINK_LAYER, RULE, SEVERITY, TIMING_SOURCE, TRAFFIC_BASIS

NCCL_FILES = Table(
    name="nccl_files",
    description="Each file with NCCL output as a whole: versions, size, transports, warnings, benchmarks.",
    grain="one row per file with NCCL content",
    primary_key=("source_path",),
    columns=columns(
        "source_path run_dir sweep origin",
        text("nccl_flavour", "which library printed the lines", FLAVOUR),
        "nccl_version",
        integer("nranks_max", "count", "ranks of the largest communicator that any line names", minimum=1),
        "num_nodes",
        integer("num_communicators", "count", "communicators that finished their initialisation in this file"),
        integer("num_channels", "count", "ring channels of the communicator that has most", minimum=1),
        "transports",
        text("networks", "networks that NCCL chose (`Using network`), separated by a comma and a space"),
        integer("num_warns", "count", "NCCL WARN lines"),
        text("first_warn", "text of the first NCCL WARN line"),
        integer("num_hangs", "count", "distinct collectives that timed out"),
        flag("has_coll", "the file holds COLL lines (one per collective call and rank)"),
        flag("has_tuning", "the file names which algorithm and protocol NCCL chose"),
        "coll_calls total_bytes init_time_s",
        integer("bench_rows", "count", "rows of nccl-tests tables"),
        integer("bench_tables", "count", "nccl-tests tables"),
        number("bench_avg_busbw", "GB/s", "average bus bandwidth, as printed; NULL: not exactly one table", minimum=0),
        text("nccl_env", "settings that NCCL found in its environment, NAME=VALUE, separated by a comma and a space"),
        integer("nccl_lines", "count", "NCCL lines, COLL lines included"),
        integer("nccl_lines_other", "count", "NCCL lines from which no fact is read"),
        integer("nccl_lines_damaged", "count", "NCCL lines cut, glued or garbled; their facts may be incomplete"),
    ),
)

NCCL_COMMUNICATORS = Table(
    name="nccl_communicators",
    description="Communicators: size, channels, transports and how long they took to come up.",
    grain="one row per file and communicator",
    primary_key=("source_path", "comm_index"),
    columns=columns(
        "source_path run_dir comm_index",
        text("comm_hash", "identity that all ranks print (commId); NULL where the version prints none"),
        text("comm_api", "call that made it, where it is printed (ncclCommInitRank, ncclCommSplit ...)"),
        integer("parent_comm_index", "id", "communicator that it was split from", minimum=1),
        integer("split_color", "id", "colour of the split", minimum=None),
        "nranks",
        integer("ranks_seen", "count", "of those, ranks whose initialisation is in this file"),
        flag("is_membership_exact", "its ranks follow from an identity; else from line order, which can mix two alike"),
        "num_nodes",
        integer("ring_channels", "count", "ring channels", minimum=1),
        integer("coll_channels", "count", "channels for collectives"),
        integer("collnet_channels", "count", "channels for CollNet (SHARP)"),
        integer("nvls_channels", "count", "channels for NVLink SHARP; 0 = not in use"),
        integer("p2p_channels", "count", "channels for send and receive"),
        integer("p2p_channels_per_peer", "count", "of those, per peer"),
        text("network", "network that NCCL chose for it"),
        "transports",
        text("ring_order", "ranks in the order of ring 0, separated by blanks"),
        "init_state init_time_s",
        integer("init_slowest_rank", "id", "rank whose initialisation took longest"),
        "init_bootstrap_s coll_calls line_no",
    ),
)

NCCL_RANKS = Table(
    name="nccl_ranks",
    description="Ranks of communicators: where each ran, how long its initialisation took and on what.",
    grain="one row per file, communicator and rank",
    primary_key=("source_path", "comm_index", "rank"),
    columns=columns(
        "source_path run_dir comm_index rank nranks host pid",
        integer("cuda_dev", "id", "GPU as CUDA numbers it (after CUDA_VISIBLE_DEVICES)"),
        integer("nvml_dev", "id", "GPU as NVML numbers it"),
        text("bus_id", "PCI bus id in hex, as printed"),
        "comm_pointer init_state init_time_s",
        number("init_kernels_s", "s", "part of the initialisation: loading kernels", minimum=0),
        number("init_alloc_s", "s", "part of the initialisation: allocating", minimum=0),
        "init_bootstrap_s",
        number("init_allgathers_s", "s", "part of the initialisation: exchanging what each rank knows", minimum=0),
        number("init_topo_s", "s", "part of the initialisation: reading the topology", minimum=0),
        number("init_graphs_s", "s", "part of the initialisation: searching rings and trees", minimum=0),
        number("init_connections_s", "s", "part of the initialisation: connecting", minimum=0),
        number("init_rest_s", "s", "part of the initialisation: all else", minimum=0),
        "coll_calls",
        integer("last_op_count", "id", "counter of the rank's last COLL line; a rank behind the others is a straggler"),
        "line_no",
    ),
)

NCCL_LINKS = Table(
    name="nccl_links",
    description="Connections between ranks and the transport each uses.",
    grain="one row per file, communicator, pair of ranks, end and transport",
    primary_key=("source_path", "line_no", "comm_index", "rank_from", "rank_to", "direction", "transport"),
    nullable_key=("comm_index", "direction"),
    columns=columns(
        "source_path run_dir comm_index rank_from rank_to",
        text("direction", "which end printed the line (send or receive); NULL within a node"),
        text("transport", "how the two are connected: P2P/CUMEM, SHM, NET/IB/GDRDMA and others"),
        text("net_devices", "network devices used, as NCCL numbers them, separated by a comma and a space"),
        integer("link_channels", "count", "lines of this link: one per channel and connection"),
        "line_no",
    ),
)

NCCL_GRAPHS = Table(
    name="nccl_graphs",
    description="Rings and trees that NCCL laid over the ranks: who sends to whom in which channels.",
    grain="one row per file, communicator, graph and edge; a rank and the next one in a ring, or its parent in a tree",
    primary_key=("source_path", "comm_index", "graph", "rank_from", "rank_to"),
    columns=columns(
        "source_path run_dir comm_index",
        text("graph", "ring or tree", GRAPH),
        "rank_from rank_to",
        integer("num_graph_channels", "count", "channels with this edge", minimum=1),
        text("graph_channels", "numbers of those channels, separated by a comma"),
        "line_no",
    ),
)

NCCL_DEVICES = Table(
    name="nccl_devices",
    description="Network devices that NCCL found on each host; a row without a device: it found none.",
    grain="one row per file, host, network and device",
    primary_key=("source_path", "host", "net_kind", "net_device", "device_name"),
    nullable_key=("net_device", "device_name"),
    columns=columns(
        "source_path run_dir host",
        text("net_kind", "part of NCCL that found the device: IB, Socket, OFI (the plugin for libfabric), or a plugin"),
        integer("net_device", "id", "number of the device, as `via` lines name it; NULL where none was found"),
        text("device_name", "name of the device (mlx5_0, eth0, a libfabric provider); ports used as one, joined by +"),
        text("device_port", "port of the device, or its IP address for sockets"),
        text("link_layer", "kind of link", LINK_LAYER),
        "line_no",
    ),
)

NCCL_COLLECTIVES = Table(
    name="nccl_collectives",
    description="Collectives and sends by size, added up from COLL lines.",
    grain="one row per file, communicator, operation, type, count and root; per rank and peer for Send and Recv",
    primary_key=(
        *("source_path", "line_no", "comm_index", "comm_pointer", "nranks", "op", "datatype", "element_count"),
        *("reduction", "root", "rank"),
    ),
    nullable_key=("comm_index", "comm_pointer", "nranks", "datatype", "reduction", "root", "rank"),
    columns=columns(
        "source_path run_dir comm_index comm_pointer nranks op datatype element_count reduction root rank",
        integer("ranks_calling", "count", "ranks (or processes, where ranks are unknown) that made the call"),
        "calls",
        integer("collectives", "count", "operations: calls of the rank that made most"),
        "message_bytes total_bytes line_no",
    ),
)

NCCL_TUNING = Table(
    name="nccl_tuning",
    description="Which algorithm, protocol and channels NCCL chose for which size.",
    grain="one row per file, operation, size and choice",
    primary_key=("source_path", "line_no", "op", "message_bytes", "algorithm", "protocol", "tuning_channels"),
    nullable_key=("op", "tuning_channels"),
    columns=columns(
        "source_path run_dir op message_bytes",
        text("algorithm", "algorithm NCCL chose: TREE, RING, COLLNET_DIRECT, COLLNET_CHAIN, NVLS, NVLS_TREE, PAT"),
        text("protocol", "protocol NCCL chose: LL, LL128, SIMPLE"),
        text("tuning_channels", "channels NCCL chose, as lowest..highest"),
        "calls line_no",
    ),
)

NCCL_INSPECTOR = Table(
    name="nccl_inspector",
    description="Collectives and sends of a run as NCCL's Inspector plugin timed them: how long calls of one size "
    "took, and which bandwidth they reached. Joined to `runs` by run_dir.",
    grain="one row per file, communicator, rank, operation, peer, size and kind of clock",
    primary_key=("source_path", "comm_hash", "rank", "op", "peer", "message_bytes", "timing_source"),
    nullable_key=("comm_hash", "rank", "peer", "timing_source"),
    redefines=("comm_hash", "rank", "calls"),
    columns=columns(
        "source_path run_dir sweep host",
        text("comm_hash", "hash of the communicator, in hexadecimal: the same on all of its ranks"),
        text("comm_name", "name that the framework gave the communicator; NULL where it gave none"),
        integer("rank", "id", "rank in the communicator", minimum=0),
        "nranks num_nodes op",
        integer("peer", "id", "the other rank of Send and Recv; NULL for collectives", minimum=0),
        "message_bytes",
        text("timing_source", "which clock timed the calls", TIMING_SOURCE),
        integer("calls", "count", "calls that the plugin wrote; it drops some where they come too fast", minimum=1),
        number("call_time_s", "s", "time of a call, the median", minimum=0),
        number("fastest_call_s", "s", "time of the fastest call", minimum=0),
        number("slowest_call_s", "s", "time of the slowest call", minimum=0),
        number("call_busbw_bytes_per_s", "bytes/s", "bus bandwidth of a call as printed, the median", minimum=0),
    ),
)

NCCL_WARNINGS = Table(
    name="nccl_warnings",
    description="NCCL WARN lines, alike ones together, with what they mean.",
    grain="one row per file and text, digits and addresses aside",
    primary_key=("source_path", "line_no", "text"),
    columns=columns(
        "source_path run_dir",
        text("warn_class", "what the warning is about, in a word"),
        text("severity", "what the warning means for the job", SEVERITY),
        "text",
        integer("num_lines", "count", "lines with this text, digits aside"),
        "host pid line_no",
    ),
)

NCCL_FINDINGS = Table(
    name="nccl_findings",
    description="What NCCL's output shows to be slower than it could be, or risky: finding, evidence and remedy.",
    grain="one row per rule and file; per host for slow_host, per run or sweep for mixed versions",
    primary_key=("nccl_rule", "source_path", "evidence"),
    layer="view",
    is_stored=True,
    redefines=("host",),
    columns=columns(
        text("nccl_rule", "which rule found it", RULE),
        text("evidence", "what was found, with its figures"),
        text("remedy", "what to look at or change"),
        text("fact_source", "source of the fact that the rule rests on"),
        integer("places", "count", "lines, links, files or communicators that show it", minimum=1),
        "origin sweep run_dir source_path line_no",
        text("host", "the host that the finding is about; NULL where it is about none alone"),
    ),
)

NCCL_TRAFFIC = Table(
    name="nccl_traffic",
    description="Bytes that each link would have carried had every collective run as a ring; derived, not measured.",
    grain="one row per file, communicator, pair of ranks and basis",
    primary_key=("source_path", "comm_index", "rank_from", "rank_to", "traffic_basis"),
    layer="view",
    columns=columns(
        "source_path comm_index rank_from rank_to",
        text("host_from", "host of the sending rank; NULL where its initialisation is not in the file"),
        text("host_to", "host of the receiving rank; NULL where its initialisation is not in the file"),
        text("traffic_basis", "what the bytes are derived from", TRAFFIC_BASIS),
        number("link_bytes", "bytes", "bytes over the link, derived", minimum=0),
    ),
)

TABLES = (
    NCCL_FILES,
    NCCL_COMMUNICATORS,
    NCCL_RANKS,
    NCCL_LINKS,
    NCCL_GRAPHS,
    NCCL_DEVICES,
    NCCL_COLLECTIVES,
    NCCL_TUNING,
    NCCL_INSPECTOR,
    NCCL_WARNINGS,
)
