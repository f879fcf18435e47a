"""What NCCL's warnings mean, and that alike ones are one row."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.nccl.lines.warn_lines import classify
from sweepscope.schemas.vocab.nccl import SEVERITY
from tests.pipeline.nccl.reading import row_of, tables_of


@pytest.mark.parametrize(
    ("text", "name", "severity"),
    [
        (
            "NET/IB : Got completion from peer 10.0.0.1<4791> with error 12, opcode 0, len 0, vendor err 129 (Recv)",
            "ib_retry_exceeded",
            "fatal",
        ),
        (
            "NET/IB: Got completion from peer 10.0.0.1<3> with status=5 opcode=129 len=0 vendor err 244 (Recv) hca mlx5_1",
            "ib_flushed",
            "follower",
        ),
        (
            "NET/IB: Got completion from peer 10.0.0.1<3> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) "
            "vendor_err=129  hca mlx5_1",
            "ib_retry_exceeded",
            "fatal",
        ),
        (
            "NET/IB: Got completion from peer 10.0.0.1<3> with status=IBV_WC_WR_FLUSH_ERR(5) opcode=IBV_WC_SEND(0)",
            "ib_flushed",
            "follower",
        ),
        ("NET/IB : mlx5_2:1 Got async event : port error", "ib_port_down", "fatal"),
        ("NET/IB : mlx5_2:1 Got async fatal event on QP 0x7f: local catastrophic error", "ib_async_event", "fatal"),
        ("NET/IB :SHARP coll init error: Cannot create SHArP job(-11)", "sharp_fallback", "fallback"),
        ("Cannot initialize CollNet, using point-to-point network instead", "sharp_fallback", "fallback"),
        ("[Service thread] Accept failed Resource temporarily unavailable", "teardown_noise", "benign"),
        ("MSCCL++: Cannot enable MSCCL++; environment is not MSCCL compatible", "mscclpp_unavailable", "fallback"),
        ("Call to connect returned Connection refused", "connect_failed", "fatal"),
        ("Cuda failure 'out of memory'", "out_of_memory", "fatal"),
        ("Failed to CUDA calloc 6291456 bytes", "out_of_memory", "fatal"),
        ("Cuda failure 'an illegal memory access was encountered'", "cuda_failure", "fatal"),
        ("Mismatched NCCL version detected : rank 0 2.18.1 rank 3 2.20.5", "version_mismatch", "fatal"),
        ("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000", "duplicate_gpu", "fatal"),
        ("socketProgress: Connection closed by remote peer node-3<5005>", "peer_gone", "follower"),
        (
            "socketStartConnect: Connect to 10.0.0.2<45763> failed : Software caused connection abort",
            "connect_failed",
            "fatal",
        ),
        ("Socket recv failed while polling for opId=0x7f6f18cb7f40", "peer_gone", "follower"),
        ("[Proxy Service 0] Failed to execute operation Connect from rank 0, retcode 2", "proxy_failed", "follower"),
        (
            "[Service thread] Error encountered progressing operation=Connect, res=3, closing",
            "proxy_failed",
            "follower",
        ),
        ("Message truncated : received 172 bytes instead of 64", "bootstrap_failed", "fatal"),
        ("Bootstrap : no socket interface found", "bootstrap_failed", "fatal"),
        ("Error: failed to extend /dev/shm/nccl-H1dBqY to 9637892 bytes", "shm_failed", "fatal"),
        ("Failed to open libibverbs.so[.1]", "ib_device_unavailable", "fallback"),
        ("P2P is disabled between connected GPUs 1 and 0.", "p2p_disabled", "fallback"),
        (
            "Could not open XML topology file /opt/ndv4-topo.xml : No such file or directory",
            "topology_file",
            "fallback",
        ),
        ("NET/OFI Creating new endpoint for domain 0x7f failed: Invalid argument", "network_error", "fatal"),
        ("NET/OFI aws-ofi-nccl initialization failed", "plugin_unavailable", "fallback"),
        (
            "NET/OFI Unable to find a protocol that worked.  Failing initialization.",
            "plugin_unavailable",
            "fallback",
        ),
        ("NET/OFI Couldn't open AV. RC: -22, ERROR: Invalid argument", "network_error", "fatal"),
        (
            "NET/OFI Unable to register memory (type = 2) for device 0. RC: -14, Error: Bad address",
            "network_error",
            "fatal",
        ),
        ("Net : Call to recv from 10.0.0.7<58355> failed : Broken pipe", "peer_gone", "follower"),
        ("Net : Call to recv from 10.0.0.7<58355> failed : Bad file descriptor", "system_call_failed", "fatal"),
        (
            "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 16777216 : CUDA error 401",
            "nvls_failed",
            "fatal",
        ),
        ("Call to bind failed: Address already in use", "system_call_failed", "fatal"),
        ("something nobody has seen", "other", "unknown"),
    ],
)
def test_a_warning_has_a_class(text: str, name: str, severity: str) -> None:
    assert classify(text) == (name, severity)
    assert severity in SEVERITY


def test_warnings_that_differ_in_digits_are_one_row() -> None:
    line = "\nn1:{p}:{p} [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.{p}<4791> with error 12, opcode 0, len {p}, vendor err 129 (Recv)\n"
    tables = tables_of("".join(line.format(p=p) for p in (7, 8, 9)))
    row = row_of(tables["nccl_warnings"])
    assert (row["num_lines"], row["line_no"], row["host"], row["pid"], row["warn_class"]) == (
        3,
        2,
        "n1",
        7,
        "ib_retry_exceeded",
    )
    assert row_of(tables["nccl_files"])["num_warns"] == 3
