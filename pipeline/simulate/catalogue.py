"""Models and accelerators of simulated runs, with published shapes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property


@dataclass(frozen=True)
class ModelShape:
    """A decoder-only transformer. `repo` is its name in picotron's config, `flavor` in torchtitan."""

    name: str
    repo: str
    family: str
    flavor: str
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    ffn_hidden_size: int
    vocab_size: int
    tie_word_embeddings: bool = False
    gated_mlp: bool = True
    num_experts: int | None = None
    experts_per_token: int | None = None

    @cached_property
    def params(self) -> int:
        """Parameters, tied embeddings once: attention, MLP (per expert) with its router, norms, embedding, head."""
        return self._count(self.num_experts or 1)

    @cached_property
    def active_params(self) -> int:
        """Parameters that one token uses; equals `params` for a dense model."""
        return self._count(self.experts_per_token or 1)

    def flops_per_token(self, seq_len: int) -> float:
        """Model FLOPs per trained token: 6N + 12·L·h·s (PaLM, 2204.02311, appendix B)."""
        return 6.0 * self.active_params + 12.0 * self.num_layers * self.hidden_size * seq_len

    def _count(self, experts: int) -> int:
        h = self.hidden_size
        attention = 2 * h * h + 2 * h * h * self.num_kv_heads // self.num_heads
        mlp = (3 if self.gated_mlp else 2) * h * self.ffn_hidden_size
        router = h * (self.num_experts or 0)
        layer = attention + experts * mlp + router + 2 * h
        embedding = self.vocab_size * h
        return self.num_layers * layer + h + embedding * (1 if self.tie_word_embeddings else 2)


@dataclass(frozen=True)
class Accelerator:
    """`name` as in the `accelerators` table; `device_name` as CUDA reports it; bandwidths per direction and GPU."""

    name: str
    device_name: str
    peak_tflops: float
    memory_bytes: int
    link_bytes_per_s: float
    network_bytes_per_s: float


def _dense(names: str, *sizes: int, is_tied: bool = False, is_gated: bool = True) -> ModelShape:
    """A model from its names (name, repo, family, flavor) and its sizes in the order of ModelShape."""
    name, repo, family, flavor = names.split()
    layers, hidden, heads, kv_heads, ffn, vocab = sizes
    return ModelShape(
        name,
        repo,
        family,
        flavor,
        layers,
        hidden,
        heads,
        kv_heads,
        ffn,
        vocab,
        tie_word_embeddings=is_tied,
        gated_mlp=is_gated,
    )


MODELS: tuple[ModelShape, ...] = (
    _dense("SmolLM2-1.7B HuggingFaceTB/SmolLM2-1.7B smollm2 1.7B", 24, 2048, 32, 32, 8192, 49152, is_tied=True),
    _dense("Llama-3.2-1B meta-llama/Llama-3.2-1B llama3 1B", 16, 2048, 32, 8, 8192, 128256, is_tied=True),
    _dense("Llama-3.2-3B meta-llama/Llama-3.2-3B llama3 3B", 28, 3072, 24, 8, 8192, 128256, is_tied=True),
    _dense("Llama-3.1-8B meta-llama/Llama-3.1-8B llama3 8B", 32, 4096, 32, 8, 14336, 128256),
    _dense("Qwen3-14B Qwen/Qwen3-14B qwen3 14B", 40, 5120, 40, 8, 17408, 151936),
    _dense("Llama-3.1-70B meta-llama/Llama-3.1-70B llama3 70B", 80, 8192, 64, 8, 28672, 128256),
)
"""Dense models for every framework."""

GPT_MODELS: tuple[ModelShape, ...] = (
    _dense("GPT-3-6.7B gpt3-6.7b gpt3 6.7B", 32, 4096, 32, 32, 16384, 50257, is_tied=True, is_gated=False),
    _dense("GPT-3-13B gpt3-13b gpt3 13B", 40, 5120, 40, 40, 20480, 50257, is_tied=True, is_gated=False),
)
"""What Megatron-LM trained before grouped-query attention and SwiGLU."""

_MIXTRAL = _dense("Mixtral-8x7B mistralai/Mixtral-8x7B-v0.1 mixtral 8x7B", 32, 4096, 32, 8, 14336, 32000)
MOE_MODELS: tuple[ModelShape, ...] = (replace(_MIXTRAL, num_experts=8, experts_per_token=2),)

_GIB = 2**30
# Capacity as torch reports it (`total_memory`), peaks dense BF16, NVLink per direction, one NIC per GPU.
ACCELERATORS: tuple[Accelerator, ...] = (
    Accelerator("H100-SXM-80GB", "NVIDIA H100 80GB HBM3", 989.0, round(79.10 * _GIB), 450e9, 50e9),
    Accelerator("A100-SXM-80GB", "NVIDIA A100-SXM4-80GB", 312.0, round(79.25 * _GIB), 300e9, 25e9),
    Accelerator("B200-SXM-180GB", "NVIDIA B200", 2250.0, round(178.35 * _GIB), 900e9, 50e9),
)
