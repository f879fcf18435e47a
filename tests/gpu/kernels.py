"""Time single kernels of a training on one GPU: products, attention, norms, loss, optimizer, copies, launches."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as f

BUDGET_S = 0.03
"""Seconds that each kernel is repeated for, after warming up."""


def time_s(work: Callable[[], Any]) -> float:
    """The median time of one call, by CUDA's events."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    work()
    last.record()
    torch.cuda.synchronize()
    repeats = max(3, min(200, int(BUDGET_S / max(first.elapsed_time(last) / 1e3, 1e-6))))
    times = []
    for _ in range(3):
        first.record()
        for _ in range(repeats):
            work()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) / 1e3 / repeats)
    return sorted(times)[1]


def products() -> list[dict[str, Any]]:
    """Matrix products in bf16 of M tokens, with the widths of layers that people train."""
    rows = []
    for n, k in (
        (768, 768),
        (2048, 2048),
        (4096, 4096),
        (14336, 4096),
        (4096, 14336),
        (8192, 2048),
        (128256, 2048),
        (1024, 4096),
    ):
        right = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        for m in (256, 1024, 2048, 4096, 8192, 16384, 32768):
            if m * n * 2 > 6e9:
                continue
            left = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
            rows.append({"kernel": "gemm", "m": m, "n": n, "k": k, "time_s": time_s(lambda a=left, b=right: a @ b.t())})
    return rows


def attention() -> list[dict[str, Any]]:
    """Causal attention, forwards, and forwards and backwards."""
    rows = []
    for heads, width in ((32, 64), (32, 128)):
        for seq in (512, 1024, 2048, 4096, 8192, 16384):
            batch = max(1, 16384 // seq)
            q, k, v = (
                torch.randn(batch, heads, seq, width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
                for _ in range(3)
            )

            def forward(q: Any = q, k: Any = k, v: Any = v) -> Any:
                return f.scaled_dot_product_attention(q, k, v, is_causal=True)

            weight = torch.randn_like(q)

            def both(w: Any = weight, run: Any = forward) -> None:
                run().backward(w)

            row = {"kernel": "sdpa", "batch": batch, "heads": heads, "width": width, "seq": seq}
            rows.append({**row, "time_s": time_s(forward), "with_backward_s": time_s(both)})
    return rows


def elementwise() -> list[dict[str, Any]]:
    """Norms, loss, activation, copies and the optimizer, each with the bytes of its input."""
    rows = []
    for tokens in (1024, 4096, 16384):
        x = torch.randn(tokens, 4096, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        weight = torch.ones(4096, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        ones = torch.ones_like(x)

        def eager(x: Any = x, weight: Any = weight) -> Any:
            wide = x.float()
            return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * weight

        def fused(x: Any = x, weight: Any = weight) -> Any:
            return f.rms_norm(x, (4096,), weight, 1e-5)

        for name, norm in (("norm eager", eager), ("norm fused", fused)):
            forward_s = time_s(norm)
            both_s = time_s(lambda norm=norm, ones=ones: norm().backward(ones))
            rows.append(
                {"kernel": name, "tokens": tokens, "width": 4096, "time_s": forward_s, "with_backward_s": both_s}
            )
        logits = torch.randn(
            tokens, 128256 if tokens <= 4096 else 32000, device="cuda", dtype=torch.bfloat16, requires_grad=True
        )
        labels = torch.randint(1000, (tokens,), device="cuda")
        rows.append(
            {
                "kernel": "loss",
                "tokens": tokens,
                "width": logits.shape[1],
                "with_backward_s": time_s(lambda a=logits, b=labels: f.cross_entropy(a.float(), b).backward()),
            }
        )
        del logits
        rows.append({"kernel": "copy", "bytes": 2 * x.numel(), "time_s": time_s(lambda x=x: x.detach().clone())})
        gate, up = torch.randn_like(x), torch.randn_like(x)
        rows.append(
            {"kernel": "swiglu", "tokens": tokens, "width": 4096, "time_s": time_s(lambda a=gate, b=up: f.silu(a) * b)}
        )
    for count in (100_000_000, 1_000_000_000):
        parameter = torch.nn.Parameter(torch.zeros(count, device="cuda"))
        parameter.grad = torch.zeros_like(parameter)
        for kinds in ({"fused": True}, {"foreach": True}):
            optimizer = torch.optim.AdamW([parameter], **kinds)
            rows.append({"kernel": f"adamw {next(iter(kinds))}", "parameters": count, "time_s": time_s(optimizer.step)})
            del optimizer
    tiny = torch.zeros(8, device="cuda")
    rows.append({"kernel": "launch", "time_s": time_s(lambda: [tiny.add_(1) for _ in range(100)]) / 100})
    return rows


def main() -> None:
    """Write all times to the file that is named."""
    rows = products() + attention() + elementwise()
    report = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}
    Path(sys.argv[1]).write_text(json.dumps(report))


if __name__ == "__main__":
    main()
