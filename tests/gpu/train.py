"""Train a Llama-like decoder in plain PyTorch on made-up tokens, on one GPU, and print what a training prints."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as f
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class Shape:
    """What a decoder is made of; `tied` heads share the embedding."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    tied: bool = False


SHAPES = {
    "tiny": Shape(2, 64, 4, 2, 128, 257, tied=True),
    "llama-360m": Shape(32, 960, 15, 5, 2560, 49152, tied=True),
    "llama-1b": Shape(16, 2048, 32, 8, 8192, 128256, tied=True),
    "smollm-1.7b": Shape(24, 2048, 32, 32, 8192, 49152, tied=True),
    "llama-3b": Shape(28, 3072, 24, 8, 8192, 128256, tied=True),
    "llama-8b": Shape(32, 4096, 32, 8, 14336, 128256),
}
"""Shapes of published models: SmolLM2 360M and 1.7B, Llama 3.2 1B and 3B, Llama 3.1 8B, each by its `config.json`."""


class Norm(nn.Module):
    """A root mean square norm, by one kernel or by the operators of its formula."""

    def __init__(self, width: int, fused: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.fused = fused

    def forward(self, x: Tensor) -> Tensor:
        if self.fused:
            return f.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), 1e-5)
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.weight.to(x.dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of `x` (batch, heads, tokens, width of a head), as most training scripts write it."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def attend(q: Tensor, k: Tensor, v: Tensor, kernel: str) -> Tensor:
    """Causal attention of heads that already agree in number."""
    if kernel == "sdpa":
        return f.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return f.softmax(scores.masked_fill(mask, float("-inf")), dim=-1, dtype=torch.float32).to(q.dtype) @ v


class Layer(nn.Module):
    """Attention and a gated feed-forward, each behind a norm."""

    def __init__(self, shape: Shape, options: argparse.Namespace) -> None:
        super().__init__()
        self.shape, self.options = shape, options
        self.width = shape.hidden // shape.heads
        self.norms = nn.ModuleList(Norm(shape.hidden, options.norm == "fused") for _ in range(2))
        self.q = nn.Linear(shape.hidden, shape.heads * self.width, bias=False)
        self.kv = nn.Linear(shape.hidden, 2 * shape.kv_heads * self.width, bias=False)
        self.o = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.gate = nn.Linear(shape.hidden, shape.ffn, bias=False)
        self.up = nn.Linear(shape.hidden, shape.ffn, bias=False)
        self.down = nn.Linear(shape.ffn, shape.hidden, bias=False)

    def attention(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        q = self.q(x).view(batch, tokens, self.shape.heads, self.width).transpose(1, 2)
        k, v = self.kv(x).view(batch, tokens, 2 * self.shape.kv_heads, self.width).transpose(1, 2).chunk(2, dim=1)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        repeats = self.shape.heads // self.shape.kv_heads
        if repeats > 1:
            k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
        if self.options.recompute == "selective":
            mixed: Tensor = checkpoint(attend, q, k, v, self.options.attention, use_reentrant=False)
        else:
            mixed = attend(q, k, v, self.options.attention)
        return self.o(mixed.transpose(1, 2).reshape(batch, tokens, -1))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x), cos, sin)
        y = self.norms[1](x)
        return x + self.down(f.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    """Embedding, layers, norm, head; returns the loss."""

    def __init__(self, shape: Shape, options: argparse.Namespace) -> None:
        super().__init__()
        self.options = options
        self.embedding = nn.Embedding(shape.vocab, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape, options) for _ in range(shape.layers))
        self.norm = Norm(shape.hidden, options.norm == "fused")
        self.head = nn.Linear(shape.hidden, shape.vocab, bias=False)
        if shape.tied:
            self.head.weight = self.embedding.weight
        nn.init.normal_(self.embedding.weight, std=0.02)
        width = shape.hidden // shape.heads
        angles = torch.outer(torch.arange(options.seq), 5e5 ** (-torch.arange(0, width, 2) / width)).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def loss(self, x: Tensor, labels: Tensor) -> Tensor:
        return f.cross_entropy(self.head(x).float().flatten(0, 1), labels.flatten(), reduction="sum")

    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
        x = self.embedding(tokens)
        kind = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else x.dtype
        x, cos, sin = x.to(kind), self.cos.to(kind), self.sin.to(kind)
        for layer in self.layers:
            x = (
                checkpoint(layer, x, cos, sin, use_reentrant=False)
                if self.options.recompute == "full"
                else layer(x, cos, sin)
            )
        x = self.norm(x)
        if self.options.loss == "chunked":
            parts = zip(x.chunk(8, dim=1), labels.chunk(8, dim=1), strict=True)
            total = sum(checkpoint(self.loss, part, wanted, use_reentrant=False) for part, wanted in parts)
        else:
            total = self.loss(x, labels)
        return total / labels.numel()


def flops_per_token(shape: Shape, seq: int) -> float:
    """FLOPs of a forward and a backward pass per token, attention counted in full (PaLM, 2204.02311, appendix B)."""
    width = shape.hidden // shape.heads
    layer = shape.hidden * (2 * shape.hidden + 2 * shape.kv_heads * width + 3 * shape.ffn)
    return 6.0 * (shape.layers * layer + shape.vocab * shape.hidden) + 12.0 * shape.layers * shape.hidden * seq


def parser() -> argparse.ArgumentParser:
    """The options of a training."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--model", choices=SHAPES, default="llama-1b")
    made.add_argument("--seq", type=int, default=2048)
    made.add_argument("--mbs", type=int, default=4)
    made.add_argument("--gas", type=int, default=1)
    made.add_argument("--recompute", choices=("none", "selective", "full"), default="none")
    made.add_argument("--compile", choices=("none", "layer"), default="none")
    made.add_argument("--attention", choices=("sdpa", "eager"), default="sdpa")
    made.add_argument("--norm", choices=("eager", "fused"), default="eager")
    made.add_argument("--loss", choices=("eager", "chunked"), default="eager")
    made.add_argument("--optimizer", choices=("fused", "foreach"), default="fused")
    made.add_argument("--precision", choices=("amp", "bf16", "fp32"), default="amp")
    made.add_argument("--parallel", choices=("none", "ddp", "fsdp"), default="none")
    made.add_argument("--steps", type=int, default=9)
    made.add_argument("--lr", type=float, default=3e-4)
    made.add_argument("--snapshot", type=Path, help="record every allocation and write the memory snapshot there")
    made.add_argument("--profile", type=Path, help="profile two steps and write the trace there")
    return made


def train(options: argparse.Namespace, measured: dict[str, Any]) -> None:
    """Train, print, and fill `measured`."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    on_gpu, shape = device.type == "cuda", SHAPES[options.model]
    torch.manual_seed(1234)
    if options.parallel != "none":
        torch.distributed.init_process_group("nccl" if on_gpu else "gloo", device_id=device if on_gpu else None)
    if options.snapshot and on_gpu:
        torch.cuda.memory._record_memory_history(max_entries=200_000, stacks="python")
    with device:
        model: Any = Decoder(shape, options)
    if options.precision == "bf16":
        model.to(torch.bfloat16)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    measured["parameters"] = parameters
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name() if on_gpu else 'cpu'}, world size 1", flush=True)
    print(f"model {options.model}: {parameters:,} parameters", flush=True)
    if options.compile == "layer":
        for layer in model.layers:
            layer.compile()
    if options.parallel == "ddp":
        model = nn.parallel.DistributedDataParallel(model, device_ids=[0] if on_gpu else None)
    elif options.parallel == "fsdp":
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in model.layers:
            fully_shard(layer, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
    kinds = {"fused": True} if options.optimizer == "fused" else {"foreach": True}
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=0.1, **kinds)
    amp = options.precision == "amp" and options.parallel != "fsdp"
    peak, times = 989e12, []
    profiler = contextlib.ExitStack()
    for step in range(1, options.steps + 1):
        if options.profile and step == options.steps - 1:
            from torch.profiler import ProfilerActivity, profile

            activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA] if on_gpu else [ProfilerActivity.CPU]
            kineto = profiler.enter_context(profile(activities=activities))
        if on_gpu:
            torch.cuda.synchronize()
        begin = time.perf_counter()
        loss = torch.zeros((), device=device)
        for _ in range(options.gas):
            tokens = torch.randint(shape.vocab, (options.mbs, options.seq + 1), device=device)
            with torch.autocast(device.type, torch.bfloat16, enabled=amp):
                part = model(tokens[:, :-1], tokens[:, 1:]) / options.gas
            part.backward()
            loss += part.detach()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        value, norm_value = loss.item(), float(norm)
        step_s = time.perf_counter() - begin
        times.append(step_s)
        rate = options.mbs * options.gas * options.seq / step_s
        allocated, reserved = (
            (torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()) if on_gpu else (0, 0)
        )
        print(
            f"step {step}/{options.steps} | loss {value:.4f} | grad norm {norm_value:.3f} | lr {options.lr:.2e} | "
            f"step time {step_s * 1e3:.1f} ms | {rate:,.0f} tokens/s | "
            f"MFU {rate * flops_per_token(shape, options.seq) / peak:.1%} | "
            f"peak memory {allocated / 2**30:.2f} GiB (reserved {reserved / 2**30:.2f} GiB)",
            flush=True,
        )
        settled = times[3:] or times
        measured.update(
            step_time_s=statistics.median(settled),
            step_times_s=[round(took, 5) for took in times],
            peak_allocated_bytes=allocated,
            peak_reserved_bytes=reserved,
        )
    profiler.close()
    if options.profile:
        kineto.export_chrome_trace(str(options.profile))
    if on_gpu:
        free, total = torch.cuda.mem_get_info()
        measured.update(used_bytes=total - free, total_bytes=total)
    if options.snapshot and on_gpu:
        torch.cuda.memory._dump_snapshot(str(options.snapshot))
    if options.parallel != "none":
        torch.distributed.destroy_process_group()
    print(f"done: {options.steps} steps", flush=True)


def main(arguments: list[str]) -> int:
    """Run one training; its `measured.json` lies in the working directory, whatever came of it."""
    options = parser().parse_args(arguments)
    print(options, flush=True)
    facts = {name: value for name, value in vars(options).items() if name not in ("snapshot", "profile")}
    measured: dict[str, Any] = {"trainer": "plain", **facts, "shape": asdict(SHAPES[options.model])}
    try:
        train(options, measured)
        measured["outcome"] = "completed"
    except torch.OutOfMemoryError:
        measured["outcome"] = "oom"
        if options.snapshot:
            torch.cuda.memory._dump_snapshot(str(options.snapshot))
        raise
    finally:
        Path("measured.json").write_text(json.dumps(measured))
    return 0


if __name__ == "__main__":
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    sys.exit(main(sys.argv[1:]))
