"""What a transformer is: its shape, and how many parameters each part has.

Parameter counts are exact for the matrices and norms named here; biases are left out (under 0.1 % of any model here).
Not here: reading a shape from a table (see `rows`), names of models (see `models`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelShape:
    """A decoder-only transformer, dense or mixture of experts, with grouped-query or latent attention.

    `ffn_hidden_size` is that of dense layers; `shared_ffn_hidden_size` that of all shared experts together.
    `kv_lora_rank` makes the attention latent (DeepSeek-V2, 2405.04434 section 2.1); then `head_dim` is the width of a
    head without its rotary part and of its value. `positions` is the number of learned positions (0: none).
    """

    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    ffn_hidden_size: int
    vocab_size: int
    gated_mlp: bool
    tie_word_embeddings: bool
    head_dim: int = 0
    positions: int = 0
    num_experts: int = 0
    experts_per_token: int = 0
    expert_ffn_hidden_size: int = 0
    shared_ffn_hidden_size: int = 0
    num_dense_layers: int = 0
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    rope_head_dim: int = 0

    @property
    def width_per_head(self) -> int:
        """Width of one head: `head_dim`, or hidden_size / num_heads where none is stated."""
        return self.head_dim or self.hidden_size // self.num_heads

    @property
    def query_width(self) -> int:
        """Width of all queries together (with the rotary part, in latent attention)."""
        return self.num_heads * (self.width_per_head + (self.rope_head_dim if self.kv_lora_rank else 0))

    @property
    def value_width(self) -> int:
        """Width of what attention returns, before the output projection."""
        return self.num_heads * self.width_per_head

    @property
    def kv_width(self) -> int:
        """Width of all keys (or of all values) as projected; 0 in latent attention."""
        return 0 if self.kv_lora_rank else self.num_kv_heads * self.width_per_head

    @property
    def mlp_matrices(self) -> int:
        """3 with a gate (SwiGLU, GeGLU), else 2."""
        return 3 if self.gated_mlp else 2

    @property
    def num_moe_layers(self) -> int:
        """Layers with routed experts."""
        return self.num_layers - self.num_dense_layers if self.num_experts else 0

    @property
    def attention_params(self) -> int:
        """Parameters of one attention block (matrices only)."""
        h, a, d = self.hidden_size, self.num_heads, self.width_per_head
        if not self.kv_lora_rank:
            return h * (2 * self.query_width + 2 * self.kv_width)
        query = (h + self.query_width) * self.q_lora_rank if self.q_lora_rank else h * self.query_width
        key_value = h * (self.kv_lora_rank + self.rope_head_dim) + self.kv_lora_rank * 2 * a * d
        return query + key_value + a * d * h

    @property
    def dense_mlp_params(self) -> int:
        """Parameters of one dense feed-forward block."""
        return self.mlp_matrices * self.hidden_size * self.ffn_hidden_size

    @property
    def expert_params(self) -> int:
        """Parameters of one routed expert."""
        return self.mlp_matrices * self.hidden_size * self.expert_ffn_hidden_size

    @property
    def shared_params(self) -> int:
        """Parameters of the shared experts and the router of one layer."""
        return self.hidden_size * (self.mlp_matrices * self.shared_ffn_hidden_size + self.num_experts)

    @property
    def embedding_params(self) -> int:
        """Parameters of one embedding (or output) matrix."""
        return self.vocab_size * self.hidden_size

    @property
    def params(self) -> int:
        """All parameters, tied embeddings once."""
        return self._count(self.num_experts)

    @property
    def active_params(self) -> int:
        """Parameters that one token meets; equals `params` in a dense model."""
        return self._count(self.experts_per_token)

    def _count(self, experts: int) -> int:
        moe = self.num_moe_layers
        blocks = self.num_layers * self.attention_params + (self.num_layers - moe) * self.dense_mlp_params
        sparse = moe * (experts * self.expert_params + self.shared_params)
        norms = (2 * self.num_layers + 1) * self.hidden_size
        embeddings = self.embedding_params * (1 if self.tie_word_embeddings else 2) + self.positions * self.hidden_size
        return blocks + sparse + norms + embeddings

    def flops_per_token(self, seq_len: int) -> float:
        """Training FLOPs of one token without recomputation: 6N + 6 L s (query + value width) (PaLM, appendix B).

        With heads of one width this is 6N + 12 L h s. N counts the output matrix once, and an untied input embedding
        too, as the published figures do.
        """
        attention = 6.0 * self.num_layers * seq_len * (self.query_width + self.value_width)
        return 6.0 * self.active_params + attention
