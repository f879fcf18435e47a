"""Numbers that decide a word (a tie, another model, a cell that cannot fit), each once, with its reason.

Python imports them from here. Those of THRESHOLDS are macros in SQL, of the same name in small letters
(`noise_without_repeats()`), so that views and users' own queries decide alike.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Threshold:
    """One number: `name` is that of its SQL macro."""

    name: str
    value: float
    meaning: str


LABEL_TOLERANCE = 0.05
"""Labels are rounded ("7B" is 6.74e9, which is 4 % off); beyond this the shape is another model than the label says."""

NOISE_WITHOUT_REPEATS = 0.01
"""A lead that one run each cannot prove. Our choice; what repeats of one layout really spread by is often more."""

USABLE_FOR_STATES = 0.9
"""Share of a card that weights, gradients and optimizer states may take. The rest is for the CUDA context, buffers and
a first activation. Our choice, on the careful side: in the bundled sweeps nothing above 0.77 completed."""

STRETCHED_FACTOR = 3.0
"""How many times the usual duration of like runs makes a run stretched. Our choice. A slow layout reaches it as well
(22 % of the Ultra-Scale Playbook's completed runs have steps three times as long as their cell's median), so that
`stretch_cause` tells time lost outside of steps from slow steps."""

STRETCHED_PEERS = 3
"""Completed runs of the same cell and step count that a usual duration needs: of fewer, a median is no norm."""

NCCL_PEERS = 3
"""Files with like communicators or benchmarks that a median needs before one of them can stand out."""

LOW_BUSBW = 0.8
"""Share of its siblings' median below which a benchmark's bus bandwidth is low. Our choice: repeats of nccl-tests on
healthy nodes lie within a few percent of each other at large sizes."""

SLOW_INIT_FACTOR = 3.0
"""How many times its siblings' median makes an initialisation slow. Our choice."""

SLOW_INIT_S = 5.0
"""Seconds beyond that median which make it worth a look: shorter ones cost no run anything."""

MEM_NEAR_LIMIT = 0.9
"""Share of a card's memory from which a run is near the limit: a retry, a longer sequence or a library's workspace
takes the rest. Our choice."""

PENALISED_RATIO = 1.5
"""Measured over estimated step time above which a run is penalised: slower than constants fitted on healthy runs can
explain, so the loss is put down to its implementation. Our choice."""

RECOMPUTABLE = 0.8
"""Share of the activations that recomputing every layer frees at least. A layer keeps 2h of about 34h bytes per token
(Korthikanti, 2205.05198, equation 2), and one layer is whole at a time: 0.94 less 1 / layers, above 0.8 from
8 layers."""

MEMORY_FIT_RUNS = 5
"""Completed runs that one factor on a term of the memory estimate is fitted to at least. Our choice."""

INTERVAL_RUNS = 5
"""Runs that a setting needs before its failure rate is shown: of fewer, the 95 % interval covers more than half of the
scale."""

PATTERN_RUNS = 5
"""Runs that a pattern of layouts needs before the 10th and 90th percentile of its residuals are shown."""

EXPLAINED_SHARE = 0.3
"""Share of the residuals of memory that one term must explain before it is named as their cause. Our choice."""

WORTHWHILE_GAIN = 0.001
"""Expected gain in throughput below which a layout is not proposed as the next run."""

Z_95 = 1.959964
"""Two-sided 95 % quantile of the normal distribution."""

THRESHOLDS = (
    Threshold("label_tolerance", LABEL_TOLERANCE, "relative difference beyond which shape and label name two models"),
    Threshold("noise_without_repeats", NOISE_WITHOUT_REPEATS, "lead in tokens/s/GPU that is a tie of single runs"),
    Threshold("usable_for_states", USABLE_FOR_STATES, "share of a card that model states may take"),
    Threshold("stretched_factor", STRETCHED_FACTOR, "times the usual duration from which a run is stretched"),
    Threshold("stretched_peers", STRETCHED_PEERS, "completed like runs that a usual duration needs"),
    Threshold("nccl_peers", NCCL_PEERS, "like files that a median of NCCL figures needs"),
    Threshold("low_busbw", LOW_BUSBW, "share of the siblings' median below which bus bandwidth is low"),
    Threshold("slow_init_factor", SLOW_INIT_FACTOR, "times the siblings' median from which an initialisation is slow"),
    Threshold("slow_init_s", SLOW_INIT_S, "seconds beyond that median which an initialisation must lose as well"),
    Threshold("mem_near_limit", MEM_NEAR_LIMIT, "share of a card's memory from which a run is near the limit"),
    Threshold("penalised_ratio", PENALISED_RATIO, "measured over estimated step time above which a run is penalised"),
    Threshold("recomputable", RECOMPUTABLE, "share of the activations that recomputing every layer frees at least"),
    Threshold("memory_fit_runs", MEMORY_FIT_RUNS, "completed runs that a term of the memory estimate is fitted to"),
    Threshold("z_95", Z_95, "two-sided 95 % quantile of the normal distribution"),
)
