"""Constants of the estimator: one profile per accelerator generation and framework, in `data/calibration/`.

A profile names the source of its constants: published measurements, or a fit with its rows, split and residuals.
Nothing else in the estimator holds a fitted number.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from sweepscope import data
from sweepscope.pipeline.errors import InputError

CALIBRATION = data.HOME / "calibration"
MODULES = ("core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts")
"""What a layer may compute again by itself, in Megatron-LM's words (`--recompute-modules`): attention between its
projections, the norms before attention and feed-forward, the products that expand latent attention, a dense
feed-forward block, all of a layer's experts, their activation function, the shared ones."""
EQUATIONS = 2
"""Version of the equations that constants are fitted for. Raised when a constant changes its meaning: profiles that
were fitted for others are not used. 2: one model of collectives, overlap per forward and backward pass."""


@dataclass(frozen=True)
class Profile:
    """Constants. Efficiencies and shares are fractions; times are seconds; bytes are bytes.

    Compute: `gemm_*` shape the efficiency of a matrix product (see `compute`; `gemm_power_w_per_tflops` is the power of
    the card that `gemm_peak_share` was measured on, 0 where that does not matter), `attention_efficiency` is the share
    of the peak of fused attention forward, which falls below `attention_half_tokens` and with heads narrower than
    `attention_half_width` (`tuned_attention_*` of kernels that are written for the generation: cuDNN's, and
    FlashAttention from `tuned_flash_version` on; 0: the same; software of `tuned_since` and later has them unasked),
    `attention_backward` its backward over its forward cost, `elementwise_passes` scales the traffic of everything that
    is neither (`elementwise`), `unfused_*_bytes` are what a forward pass moves beyond fused kernels, per number of the
    hidden (norms apart), feed-forward and query width. `kernel_launch_s` is what the processor spends on each kernel;
    `eager_launch_s`, `compiled_launch_s` and `graph_launch_s` are what it spends where PyTorch runs operator by
    operator, compiles its layers, or replays CUDA graphs; a card that `runs_compiled` has its compiler make graphs of
    whatever a trainer runs. Communication: achieved shares of the links, latencies per
    hop, shares hidden behind compute. Memory: bytes kept per parameter and per activation. Of experts: `dispatch_bytes`
    of a number in the mean of their four exchanges; `nodes_per_token`, the most domains that a token is sent to, once
    each (0: a copy per expert). A dispatcher that `sends_once_per_domain` sends a token once to each domain that its
    experts are in. A trainer that `hides_experts` runs the exchanges of one micro-batch under the passes of another.
    `bf16_layers` keep their products in 16 bit beside those in FP8 or FP4, which keep `gain_kept` of what they gain
    with one scale for a tensor. `recomputed_modules` are words of MODULES, with commas between;
    `kept_product_bytes` are those of a number that products and activation functions keep. `selective` says what
    selective recomputation drops: "attention", the core of attention that is not fused (Korthikanti section 5.1), or
    "products", every second matrix product and all between (torchtitan's `_get_custom_policy`). `softmax` is how that
    of attention that is not fused runs (`elementwise.SCORES`). A pipeline that
    `sends_beside` compute does so without chunks, too. A trainer that `gathers_logits` has each rank of a tensor group
    compute the loss of the whole vocabulary. What nothing says of a row is open (`is_*_open`, and operators of
    `open_operators`, with commas between; see `rows.open_ends`). A replica that `frees_gradients` after its step has
    none beside the activations of the next (`memory`). One that `reduces_whole` gives every rank all gradients
    although ZeRO-1 shards their states. In `cut_sends` of a pipeline's two directions the ranks of a tensor group send
    a part each of what all of them have. `software_*` say how kernels get faster with the year of the software
    (`maturity`): the first of `software_since` lacked `software_gap`, constants are of `software_of`, and a row runs
    at `software_rate` times their rate. `folder` is that of the profile's file and of its track record.
    """

    gemm_peak_share: float
    gemm_wave_loss: float
    gemm_half_waves: float
    gemm_half_depth: float
    memory_share: float
    kernel_launch_s: float
    eager_launch_s: float
    compiled_launch_s: float
    graph_launch_s: float
    attention_efficiency: float
    attention_half_tokens: float
    attention_backward: float
    elementwise_passes: float
    head_bytes_per_logit: float
    fp8_gain: float
    full_recompute_cost: float
    link_share: float
    network_share: float
    network_decay: float
    multicast_share: float
    link_latency_s: float
    network_latency_s: float
    bucket_bytes: float
    tp_hidden: float
    dp_hidden: float
    pp_hidden: float
    shard_contention: float
    exchange_launch_s: float
    exchange_launch_growth: float
    expert_imbalance: float
    expert_efficiency: float
    fixed_step_s: float
    slow_node_chance: float
    slow_node_cost: float
    microbatch_s: float
    optimizer_passes: float
    weight_bytes: float
    grad_bytes: float
    grad_held_bytes: float
    grad_fresh_bytes: float
    grad_bucket_bytes: float
    optimizer_bytes: float
    norm_bytes: float
    rotary_copies: float
    mlp_bytes_gated: float
    mlp_bytes_plain: float
    gathered_bytes: float
    exchange_buffer_bytes: float
    logit_bytes: float
    logit_kept_bytes: float
    context_bytes: float
    outside_bytes: float
    memory_growth: float
    fragmentation: float
    has_dropout: bool = False
    is_flash: bool = True
    is_sequence_parallel: bool = True
    hides_gather: bool = True
    shards_optimizer_at_zero3: bool = True
    placement: str = "even"
    keeps_gathered: str = "alone"
    schedule: str = "1f1b"
    fuses_accumulation: bool = False
    is_launch_open: bool = False
    is_loss_open: bool = False
    is_dispatch_open: bool = False
    is_experts_overlap_open: bool = False
    is_send_open: bool = False
    is_gather_open: bool = False
    is_state_open: bool = False
    open_operators: str = ""
    runs_compiled: bool = False
    frees_gradients: bool = False
    reduces_whole: bool = False
    gathers_logits: bool = False
    cut_sends: float = 0.0
    softmax: str = "fused"
    recomputed_modules: str = ""
    selective: str = "attention"
    kept_product_bytes: float = 2.0
    dispatch_bytes: float = 2.0
    nodes_per_token: float = 0.0
    bf16_layers: float = 0.0
    gain_kept: float = 1.0
    gemm_power_w_per_tflops: float = 0.0
    sends_once_per_domain: bool = False
    hides_experts: bool = False
    sends_beside: bool = False
    tuned_attention_efficiency: float = 0.0
    tuned_attention_half_tokens: float = 300.0
    tuned_attention_half_width: float = 0.0
    tuned_flash_version: float = 3.0
    tuned_since: float = 0.0
    attention_half_width: float = 0.0
    unfused_hidden_bytes: float = 0.0
    unfused_norm_bytes: float = 0.0
    unfused_norm_kept_bytes: float = 0.0
    unfused_inner_bytes: float = 0.0
    unfused_query_bytes: float = 0.0
    cp_hidden: float = 0.9
    software_since: float = 0.0
    software_of: float = 0.0
    software_gap: float = 0.0
    software_years: float = 1.0
    software_rate: float = 1.0
    name: str = ""
    about: dict[str, Any] = field(default_factory=dict, compare=False, hash=False)
    folder: Path | None = field(default=None, compare=False, hash=False)


CONSTANTS = tuple(entry.name for entry in fields(Profile) if entry.name not in ("name", "about", "folder"))


def constants_digest(path: Path) -> str:
    """Fingerprint of the constants that a profile's file states."""
    constants = tomllib.loads(path.read_text(encoding="utf-8")).get("constants", {})
    return hashlib.sha256(json.dumps(constants, sort_keys=True).encode()).hexdigest()[:12]


def read_profile(path: Path, *, base: Profile | None = None) -> Profile:
    """A profile file. What it leaves out comes from `base`. Raises InputError for a name that is no constant."""
    with path.open("rb") as handle:
        text = tomllib.load(handle)
    constants = text.get("constants", {})
    if unknown := sorted(set(constants) - set(CONSTANTS)):
        raise InputError(f"{path}: no such constant: {', '.join(unknown)}. Known: {', '.join(CONSTANTS)}.")
    about = text.get("about", {})
    if base is None:
        return Profile(**constants, name=path.stem, about=about, folder=path.parent)
    return replace(base, **constants, name=path.stem, about=about, folder=path.parent)


def is_current(path: Path) -> bool:
    """Whether a profile's file was written by hand, or fitted for the equations in force."""
    about = tomllib.loads(path.read_text(encoding="utf-8")).get("about", {})
    return bool(about.get("kind") != "fitted" or about.get("equations") == EQUATIONS)


def recomputes(profile: Profile, module: str) -> bool:
    """Whether a word of MODULES is among those that the backward pass computes again."""
    return module in profile.recomputed_modules.split(",")


def drops_selectively(profile: Profile) -> bool:
    """Whether selective recomputation drops anything: fused attention keeps no core that it could drop."""
    return profile.selective == "products" or not profile.is_flash


def with_values(profile: Profile, values: Mapping[str, float | bool | str]) -> Profile:
    """The profile with some constants replaced."""
    replaced: dict[str, Any] = dict(values)
    return replace(profile, **replaced)


@cache
def load_profiles(folder: Path = CALIBRATION) -> dict[str, Profile]:
    """Every bundled profile by name, on top of `default`."""
    base = read_profile(folder / "default.toml")
    found = {path.stem: read_profile(path, base=base) for path in sorted(folder.glob("*.toml"))}
    return {**{name: _with_tuned_kernels(found, one) for name, one in found.items()}, "default": base}


def _with_tuned_kernels(found: Mapping[str, Profile], fitted: Profile) -> Profile:
    """A framework's profile with the attention kernels of its generation: what a row may state is no matter of fits."""
    generation = found.get(fitted.name.partition("-")[0], fitted)
    tuned = {name: getattr(generation, name) for name in CONSTANTS if name.startswith("tuned_")}
    return fitted if fitted.tuned_attention_efficiency else with_values(fitted, tuned)


def choose_profile(generation: str, framework: str | None, folder: Path = CALIBRATION) -> Profile:
    """The profile of a framework on a card generation; else of the generation; else the framework's; else `default`.

    Names are `<generation>-<framework>`, `<generation>`, `<framework>`.
    """
    profiles = load_profiles(folder)
    for name in (f"{generation}-{framework}", generation, framework or ""):
        if name in profiles:
            return profiles[name]
    return profiles["default"]
