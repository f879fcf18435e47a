"""Words of NCCL output, benchmarks, hangs and findings."""

from __future__ import annotations

FLAVOUR: dict[str, str] = {"NCCL": "NVIDIA NCCL", "RCCL": "AMD RCCL"}

INIT_STATE: dict[str, str] = {
    "started": "its initialisation began; no line reports its end",
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

TIMING_SOURCE: dict[str, str] = {
    "kernel_gpu": "the GPU's, in the kernel",
    "kernel_cpu": "the processor's, from the kernel's begin to its end",
    "collective_cpu": "the processor's, around the call",
    "unknown": "the plugin does not know",
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
    "printed": "the log has the program's name",
    "columns": "follows from the table's columns: reduction, root, count and the factor of bus bandwidth",
    "file_name": "follows from the name of the file or of its directory",
    "option": "given by --op",
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
