"""NCCL WARN lines, counted by template and classified by what they mean for the job."""

from __future__ import annotations

import re

import polars as pl

from sweepscope.pipeline.nccl.facts import Notes
from sweepscope.pipeline.nccl.lines.messages import Message

TEXT_CHARS = 500

# (class, severity, pattern), the first match counts. Texts as in src/: transport/net_ib.cc, transport/net_socket.cc,
# misc/socket.cc, proxy.cc, init.cc, transport/coll_net.cc, misc/ibvwrap.cc; MSCCL++ is RCCL's. The status of a
# completion was a number; since 2.28 its name precedes it (transport/net_ib/p2p.cc).
_STATUS = r"Got completion .*?(?:error|status)[ =](?:\w+\()?"
_RULES: tuple[tuple[str, str, str], ...] = (
    ("ib_flushed", "follower", _STATUS + r"5\b"),
    ("ib_retry_exceeded", "fatal", _STATUS + r"12\b"),
    ("ib_rnr_retry_exceeded", "fatal", _STATUS + r"13\b"),
    ("ib_completion_error", "fatal", _STATUS + r"\d"),
    ("ib_port_down", "fatal", r"Got async (?:fatal )?event ?: (?:port error|client reregistration)"),
    ("ib_async_event", "fatal", r"[Aa]sync (?:fatal )?event"),
    ("sharp_fallback", "fallback", r"SHARP coll init error|Cannot initialize CollNet|SHArP"),
    ("mscclpp_unavailable", "fallback", r"MSCCL(?:\+\+)?.*(?:Cannot|not|[Uu]nable)"),
    ("ib_device_unavailable", "fallback", r"Unable to open device|ibv_open_device failed|Failed to open libibverbs"),
    ("p2p_disabled", "fallback", r"P2P is disabled between"),
    ("topology_file", "fallback", r"XML|[Cc]ould not find a path for pattern"),
    ("slow_setting", "fallback", r"NUMA (?:auto )?balancing|HSA_FORCE_FINE_GRAIN"),
    (
        "plugin_unavailable",
        "fallback",
        r"NET/OFI .*(?:initialization failed|Failing initialization|Only EFA provider|No eligible|fi_getinfo)",
    ),
    ("ib_call_failed", "fatal", r"Call to ibv_\w+ failed|ibv_\w+ failed"),
    ("teardown_noise", "benign", r"\[Service thread\] (?:Accept failed|Could not receive type from localRank)"),
    ("teardown_noise", "benign", r"\[Proxy Service \d+\] Failed to execute operation Close"),
    ("proxy_failed", "follower", r"\[Proxy Service \d+\] Failed|\[Service thread\] Error|Proxy Call to rank .* failed"),
    ("peer_gone", "follower", r"[Cc]onnection closed by|Connection reset by peer|Broken pipe|remote process exited"),
    ("peer_gone", "follower", r"Socket recv failed while polling"),
    ("connect_failed", "fatal", r"[Cc]onnect.* (?:returned|failed)|Connection (?:refused|timed out)|No route to host"),
    ("bootstrap_failed", "fatal", r"Message truncated|Bootstrap Root|no socket interface found|No interface found"),
    ("out_of_memory", "fatal", r"out of memory|[Ff]ailed to (?:(?:CUDA )?[cm]alloc|allocate)|Cannot allocate memory"),
    ("version_mismatch", "fatal", r"Mismatched NCCL version"),
    ("duplicate_gpu", "fatal", r"Duplicate GPU detected"),
    ("nvml_failed", "fatal", r"nvml\w*\(|libnvidia-ml"),
    ("nvls_failed", "fatal", r"NVLink SHARP|NVLS"),
    ("cuda_failure", "fatal", r"C(?:uda|UDA) failure|HIP failure|CUDA driver|Failed to CUDA"),
    ("invalid_usage", "fatal", r"invalid (?:argument|usage)|is not a valid pointer|[Ii]nvalid (?:root|rank|type|op)\b"),
    ("shm_failed", "fatal", r"[Ee]rror while (?:creating|attaching to) shared memory|/dev/shm|No space left on device"),
    ("gdr_unavailable", "fallback", r"GPU Direct RDMA.*(?:[Dd]isabled|not)|No module present for GPU Direct|peermem"),
    ("acs_or_iommu", "fallback", r"ACS|IOMMU|iommu"),
    ("network_error", "fatal", r"NET/\w+ ?:?.*(?:error|ERROR|[Ff]ailed|Couldn't|Unable to)|network .* not found"),
    ("system_call_failed", "fatal", r"Call to \w+ (?:(?:from|to) \S+ )?(?:failed|returned)"),
)
_COMPILED = tuple((name, severity, re.compile(pattern)) for name, severity, pattern in _RULES)
_VARYING = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)*|[0-9a-f]*:[0-9a-f:]{4,}")


def classify(text: str) -> tuple[str, str]:
    """Class and severity (schemas.vocab.nccl.SEVERITY) of a warning's text.

    >>> classify("NET/IB : Got completion from peer 10.0.0.1<3> with status=12 opcode=0 len=0 vendor err 129 (Recv)")
    ('ib_retry_exceeded', 'fatal')
    """
    return next(((n, severity) for n, severity, pattern in _COMPILED if pattern.search(text)), ("other", "unknown"))


def template_of(text: str) -> str:
    """The text without its digits and addresses.

    >>> template_of("NET/IB : Got completion from peer 10.0.0.1<4791> with error 12, len 0x1f")
    'NET/IB : Got completion from peer #<#> with error #, len #'
    """
    return _VARYING.sub("#", text)


def read_warning(message: Message, line_no: int, notes: Notes) -> None:
    """A WARN line, counted with those that differ in digits and addresses only."""
    text = message.text[:TEXT_CHARS]
    notes.count("warn", line_no, message.host, message.pid, text)


def warning_rows(warns: pl.DataFrame) -> pl.DataFrame:
    """Rows of `nccl_warnings`, by `source`, of `warn` facts."""
    texts = warns["text"].unique().to_list()
    templates = {text: template_of(text) for text in texts}
    classes = {text: classify(text) for text in texts}
    named = warns.sort("source", "line_no").with_columns(
        shape=pl.col("text").replace_strict(templates, return_dtype=pl.String),
        warn_class=pl.col("text").replace_strict({t: c for t, (c, _) in classes.items()}, return_dtype=pl.String),
        severity=pl.col("text").replace_strict({t: s for t, (_, s) in classes.items()}, return_dtype=pl.String),
    )
    return named.group_by("source", "shape", "warn_class", "severity", maintain_order=True).agg(
        pl.col("line_no", "host", "pid", "text").first(), num_lines=pl.col("lines").sum()
    )
