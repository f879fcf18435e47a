"""Columns and vocabularies of NCCL output, nccl-tests tables, hangs and flight records."""

from __future__ import annotations

from sweepscope.schemas.core.column import bool_column as _bool
from sweepscope.schemas.core.column import float_column as _float
from sweepscope.schemas.core.column import int_column as _int
from sweepscope.schemas.core.column import text_column as _text

FLAVOUR: dict[str, str] = {
    "NCCL": "NVIDIA NCCL",
    "RCCL": "AMD RCCL",
}

INIT_STATE: dict[str, str] = {
    "started": "its initialisation began and no line says that it ended",
    "complete": "initialised",
    "destroyed": "initialised, and destroyed in order",
    "aborted": "aborted, by an error or at the end of the job",
}

GRAPH: dict[str, str] = {
    "ring": "a ring: each rank sends to the next one",
    "tree": "a tree: each rank sends to its parent for a reduction, and the other way for a broadcast",
}

TRAFFIC_BASIS: dict[str, str] = {
    "ring": "COLL lines added up, as if each had run over the printed rings",
    "send": "Send calls, to the peer that they name",
}

LINK_LAYER: dict[str, str] = {
    "IB": "InfiniBand",
    "IB/SHARP": "InfiniBand that can reduce in the network",
    "RoCE": "RDMA over Ethernet",
    "RoCE/SHARP": "RDMA over Ethernet that can reduce in the network",
    "IB+RoCE": "ports of both kinds as one device",
    "Ethernet": "TCP sockets",
}

OP_SOURCE: dict[str, str] = {
    "printed": "the program's name stands in the log",
    "columns": "told by the table's own columns: reduction, root, count and the factor of bus bandwidth",
    "file_name": "told by the name of the file or of its directory",
    "option": "told by --op",
}

SEVERITY: dict[str, str] = {
    "fatal": "a failure: the communicator cannot go on",
    "follower": "what other ranks say once one has failed; not the cause",
    "fallback": "something faster is not available; the job goes on without it",
    "benign": "noise of start or teardown",
    "unknown": "no rule knows the text",
}

HANG_LINE: dict[str, str] = {
    "timeout": "a rank gave up on a collective",
    "status": "how far the rank had come when it gave up",
    "dump": "how far the rank had come when another one gave up",
    "stuck": "the watchdog itself was stuck, or no heartbeat came",
    "died": "a rank failed for a reason of its own",
    "lags": "PyTorch's desync report names a rank that is behind",
}

HANG_EVIDENCE: dict[str, str] = {
    "watchdog": "lines of PyTorch's collective watchdog",
    "flight_recorder": "dumps of PyTorch's flight recorder",
}

RULE: dict[str, str] = {
    "socket_despite_ib": "ranks talk over TCP sockets although InfiniBand or RoCE is there",
    "socket_network": "ranks of several nodes talk over TCP sockets; whether something faster is there is not logged",
    "net_within_node": "ranks of one node talk over the network",
    "gdrdma_off": "an RDMA network is in use without GPUDirect RDMA: data goes through host memory",
    "shm_within_node": "GPUs of one node talk through host memory",
    "tp_across_nodes": "a tensor-parallel group spans nodes",
    "slow_host": "a host whose every benchmark is below those of like hosts",
    "low_busbw": "bus bandwidth below what like benchmarks of the sweep reach",
    "idle_nics": "network devices of a node stay idle although it has a GPU for each",
    "ring_crossings": "a ring goes from node to node more often than once per node",
    "cross_nic": "connections leave one node by another network device than they enter the next one by",
    "fewer_channels": "fewer channels than like runs of the sweep",
    "mixed_versions_run": "one run loads several NCCL versions",
    "mixed_versions_sweep": "runs of one sweep use several NCCL versions",
    "sharp_fallback": "in-network reduction (SHARP) was asked for and is not in use",
    "slow_init": "a communicator took many times longer to come up than those of like runs",
}

_FILE = (
    _text("nccl_flavour", "which library printed the lines", FLAVOUR),
    _int("nranks_max", "count", "ranks of the largest communicator that any line names", minimum=1),
    _int("num_communicators", "count", "communicators that finished their initialisation in this file"),
    _int("num_channels", "count", "ring channels of the communicator that has most", minimum=1),
    _text("transports", "transports in use (`via` lines), separated by a comma and a space"),
    _text("networks", "networks that NCCL chose (`Using network`), separated by a comma and a space"),
    _int("num_warns", "count", "NCCL WARN lines"),
    _text("first_warn", "text of the first NCCL WARN line"),
    _int("num_hangs", "count", "distinct collectives that timed out"),
    _bool("has_coll", "the file holds COLL lines (one per collective call and rank)"),
    _bool("has_tuning", "the file says which algorithm and protocol NCCL chose"),
    _int("coll_calls", "count", "COLL lines: calls summed over ranks"),
    _float("init_time_s", "s", "time of communicator initialisation (of the slowest rank)", minimum=0),
    _int("bench_rows", "count", "rows of nccl-tests tables"),
    _int("bench_tables", "count", "nccl-tests tables"),
    _float("bench_avg_busbw", "GB/s", "average bus bandwidth as nccl-tests prints it; NULL unless there is one table"),
    _text("nccl_env", "settings that NCCL found in its environment, NAME=VALUE, separated by a comma and a space"),
    _int("nccl_lines", "count", "NCCL lines, COLL lines included"),
    _int("nccl_lines_other", "count", "NCCL lines from which no fact is read"),
    _int("nccl_lines_damaged", "count", "NCCL lines that are cut, glued or garbled; what they say may be incomplete"),
)

_COMMUNICATOR = (
    _int(
        "comm_index",
        "id",
        "number of the communicator within its file, from 1 in the order of its first line",
        minimum=1,
    ),
    _text("comm_hash", "identity that all ranks print (commId); NULL where the version prints none"),
    _text("comm_api", "call that made it, where it is printed (ncclCommInitRank, ncclCommSplit ...)"),
    _int("parent_comm_index", "id", "communicator that it was split from", minimum=1),
    _int("split_color", "id", "colour of the split", minimum=None),
    _int("nranks", "count", "ranks of the communicator", minimum=1),
    _int("ranks_seen", "count", "of those, ranks whose initialisation stands in this file"),
    _bool(
        "is_membership_exact",
        "its ranks are told by an identity; else by the order of the lines, which can mix communicators of one size",
    ),
    _int("ring_channels", "count", "ring channels", minimum=1),
    _int("coll_channels", "count", "channels for collectives"),
    _int("collnet_channels", "count", "channels for CollNet (SHARP)"),
    _int("nvls_channels", "count", "channels for NVLink SHARP; 0 = not in use"),
    _int("p2p_channels", "count", "channels for send and receive"),
    _int("p2p_channels_per_peer", "count", "of those, per peer"),
    _text("network", "network that NCCL chose for it"),
    _text("ring_order", "ranks in the order of ring 0, separated by blanks"),
    _int("init_slowest_rank", "id", "rank whose initialisation took longest"),
    _text("init_state", "how far the communicator or rank came", INIT_STATE),
    _float("init_kernels_s", "s", "part of the initialisation: loading kernels", minimum=0),
    _float("init_alloc_s", "s", "part of the initialisation: allocating", minimum=0),
    _float(
        "init_bootstrap_s",
        "s",
        "part of the initialisation: finding the other ranks; waiting for late ones is here",
        minimum=0,
    ),
    _float("init_allgathers_s", "s", "part of the initialisation: exchanging what each rank knows", minimum=0),
    _float("init_topo_s", "s", "part of the initialisation: reading the topology", minimum=0),
    _float("init_graphs_s", "s", "part of the initialisation: searching rings and trees", minimum=0),
    _float("init_connections_s", "s", "part of the initialisation: connecting", minimum=0),
    _float("init_rest_s", "s", "part of the initialisation: all else", minimum=0),
    _int("pid", "id", "process id"),
    _int("cuda_dev", "id", "GPU as CUDA numbers it (after CUDA_VISIBLE_DEVICES)"),
    _int("nvml_dev", "id", "GPU as NVML numbers it"),
    _text("bus_id", "PCI bus id in hex, as printed"),
    _text(
        "comm_pointer",
        "address of the communicator in its process, used again after it is destroyed",
    ),
    _int("last_op_count", "id", "counter of the rank's last COLL line; a rank behind the others is a straggler"),
)

_LINK = (
    _int("rank_from", "id", "rank at the sending end"),
    _int("rank_to", "id", "rank at the receiving end"),
    _text("direction", "which end printed the line (send or receive); NULL within a node"),
    _text("transport", "how the two are connected: P2P/CUMEM, SHM, NET/IB/GDRDMA and others"),
    _text("net_devices", "network devices used, as NCCL numbers them, separated by a comma and a space"),
    _int("link_channels", "count", "lines of this link: one per channel and connection"),
    _text("graph", "ring or tree", GRAPH),
    _int("num_graph_channels", "count", "channels in which the edge stands", minimum=1),
    _text("graph_channels", "numbers of those channels, separated by a comma"),
    _text("host_from", "host of the sending rank; NULL where its initialisation is not in the file"),
    _text("host_to", "host of the receiving rank; NULL where its initialisation is not in the file"),
    _text("traffic_basis", "what the bytes are derived from", TRAFFIC_BASIS),
    _float("link_bytes", "bytes", "bytes over the link, derived", minimum=0),
    _text("net_kind", "part of NCCL that found the device: IB, Socket, OFI (the plugin for libfabric), or a plugin"),
    _int("net_device", "id", "number of the device, as `via` lines name it; NULL where none was found"),
    _text("device_name", "name of the device (mlx5_0, eth0, a libfabric provider); ports used as one, joined by +"),
    _text("device_port", "port of the device, or its IP address for sockets"),
    _text("link_layer", "kind of link", LINK_LAYER),
)

_COLLECTIVE = (
    _text(
        "op", "operation, as its source spells it: AllReduce (NCCL), ALLREDUCE (watchdog), all_reduce (flight recorder)"
    ),
    _text("datatype", "element type; int8 for AllGather and Broadcast of NCCL 2.7 to 2.21, which print bytes"),
    _int(
        "element_count",
        "count",
        "elements per call, as the API counts them: AllGather per sender, ReduceScatter per "
        "receiver, others the whole buffer",
    ),
    _text("reduction", "reduction: sum, prod, max, min, avg; NULL where there is none"),
    _int("root", "id", "root rank of rooted collectives; the peer of Send and Recv", minimum=-1),
    _int("ranks_calling", "count", "ranks (or processes, where ranks are unknown) that made the call"),
    _int("calls", "count", "lines: calls summed over ranks"),
    _int("collectives", "count", "operations: calls of the rank that made most"),
    _int(
        "message_bytes",
        "bytes",
        "size of one operation: the whole buffer, over all ranks for AllGather, ReduceScatter and AlltoAll",
    ),
    _int("total_bytes", "bytes", "message_bytes times operations"),
    _text("algorithm", "algorithm NCCL chose: TREE, RING, COLLNET_DIRECT, COLLNET_CHAIN, NVLS, NVLS_TREE, PAT"),
    _text("protocol", "protocol NCCL chose: LL, LL128, SIMPLE"),
    _text("tuning_channels", "channels NCCL chose, as lowest..highest"),
    _text("warn_class", "what the warning is about, in a word"),
    _text("severity", "what the warning means for the job", SEVERITY),
    _int("num_lines", "count", "lines with this text, digits aside"),
)

_BENCH = (
    _int("table_no", "count", "number of the table within its file, from 1", minimum=1),
    _text("op_source", "how the benchmarked operation is known; NULL where it is not", OP_SOURCE),
    _float("time_s", "s", "time per operation, out of place", minimum=0),
    _float("algbw_bytes_per_s", "bytes/s", "message_bytes / time_s, as printed", minimum=0),
    _float("busbw_bytes_per_s", "bytes/s", "algorithm bandwidth times the operation's factor, as printed", minimum=0),
    _float("wrong_elements", "count", "wrong elements (the largest error, in old versions); NULL when not checked"),
    _float("in_place_time_s", "s", "time per operation, in place", minimum=0),
    _float("in_place_algbw_bytes_per_s", "bytes/s", "message_bytes / in_place_time_s, as printed", minimum=0),
    _float("in_place_busbw_bytes_per_s", "bytes/s", "the same times the operation's factor, as printed", minimum=0),
    _float("in_place_wrong_elements", "count", "wrong elements in place; NULL when not checked"),
)

_NETWORK_FACTS = (
    _float("bandwidth_bytes_per_s", "bytes/s", "bandwidth of a collective as published, the median", minimum=0),
    _float("bandwidth_p5_bytes_per_s", "bytes/s", "its 5th percentile", minimum=0),
    _float("bandwidth_p95_bytes_per_s", "bytes/s", "its 95th percentile", minimum=0),
    _float("memory_bytes_per_s", "bytes/s", "bandwidth of the accelerator's memory", minimum=0),
    _float("link_bytes_per_s", "bytes/s", "bandwidth of its links within a node, one direction", minimum=0),
    _float("network_bytes_per_s", "bytes/s", "its share of the network in usual clusters, one direction", minimum=0),
    _int("usual_gpus_per_node", "count", "accelerators of a usual node, or of one link domain", minimum=1),
)

_HANG = (
    _int("seq", "id", "sequence number of the collective within its process group"),
    _text("process_group", "process group, as PyTorch names it; NULL where it is not printed"),
    _int("numel_in", "count", "elements of the input"),
    _int("numel_out", "count", "elements of the output"),
    _int("timeout_ms", "ms", "timeout of the watchdog"),
    _int("ran_for_ms", "ms", "longest time that a rank waited"),
    _int("num_ranks", "count", "ranks of the process group (of the job, where the group is not known)", minimum=1),
    _text("ranks_reporting", "ranks that reported this collective, separated by a comma"),
    _text("ranks_silent", "ranks of the group that reported no timeout at all, separated by a comma"),
    _text("ranks_elsewhere", "ranks that timed out on another collective, separated by a comma"),
    _text("suspect", "ranks that are the likely cause, separated by a comma; NULL when it cannot be determined"),
    _text("suspect_reason", "why, or why it is not determinable"),
    _bool("is_first", "the collective of this file that began to wait first, as far as the lines tell"),
    _text("evidence_source", "what says so", HANG_EVIDENCE),
    _text("hang_line_kind", "what the line says", HANG_LINE),
    _float("printed_after_s", "s", "seconds after the first such line of the run that prints a time", minimum=0),
    _text("printed_at", "when, as printed: month, day and time (glog prints no year), or date and time"),
)

_FLIGHT = (
    _int("record_id", "id", "number of the record; the first one above 0 means that the ring buffer wrapped"),
    _text("dump_version", "version of the dump's format"),
    _text("pg_name", "name of the process group"),
    _text("pg_desc", "description of the process group"),
    _text("pg_ranks", "global ranks of the process group, separated by a comma"),
    _int("p2p_seq", "id", "sequence number among the group's sends and receives"),
    _int("op_id", "id", "number of the operation, those inside a coalesced call counted"),
    _text("profiling_name", "operation as the recorder names it, nccl:all_reduce"),
    _text("op_state", "scheduled, started or completed; says nothing under Gloo"),
    _bool("is_p2p", "a send or receive"),
    _bool("is_retired", "the watchdog has let go of it: completed, or timed out"),
    _text("input_sizes", "shapes of the inputs"),
    _text("output_sizes", "shapes of the outputs"),
    _text("input_dtypes", "types of the inputs, separated by a comma"),
    _text("output_dtypes", "types of the outputs, separated by a comma"),
    _int("created_ns", "ns", "when it was enqueued, since 1970"),
    _int("found_started_ns", "ns", "when the watchdog saw it started (an upper bound)"),
    _int("found_completed_ns", "ns", "when the watchdog saw it completed (an upper bound)"),
    _float("duration_ms", "ms", "time on the GPU, with timing enabled", minimum=0),
    _int("last_enqueued_seq", "id", "last collective that this rank had enqueued in the group; -1 = none", minimum=-1),
    _int("last_started_seq", "id", "last collective that this rank had started in the group; -1 = none", minimum=-1),
    _int(
        "last_completed_seq", "id", "last collective that this rank had completed in the group; -1 = none", minimum=-1
    ),
    _text("stack", "Python frames, innermost first, file:line function, separated by ' < '"),
)

_FINDING = (
    _text("nccl_rule", "which rule found it", RULE),
    _text("evidence", "what was found, with its figures"),
    _text("remedy", "what to look at or change"),
    _text("fact_source", "where the fact stands that the rule rests on"),
    _int("places", "count", "lines, links, files or communicators that show it", minimum=1),
)

COLUMNS = (*_FILE, *_COMMUNICATOR, *_LINK, *_COLLECTIVE, *_BENCH, *_NETWORK_FACTS, *_HANG, *_FLIGHT, *_FINDING)
