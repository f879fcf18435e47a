"""Numbers that decide a word (a tie, another model, a cell that cannot fit), each once, with its reason.

Python imports them from here. Those of THRESHOLDS are macros in SQL, of the same name in small letters
(`mem_near_limit()`), so that views and users' own queries decide alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Threshold:
    """One number: `name` is that of its SQL macro."""

    name: str
    value: float
    meaning: str


LABEL_TOLERANCE = 0.05
"""Labels are rounded ("7B" is 6.74e9, which is 4 % off); beyond this shape and label are different models."""

SHAPE_TOLERANCE = 0.03
"""Relative difference between stated parameters and those of a shape up to which gate and tying are taken from them:
published sizes are rounded."""

HFU_MARGIN = 1.5
"""Times the printed HFU above which a recomputed MFU is impossible. HFU counts at least what MFU counts, but a source
may leave attention out of it: 12Lhs over the 6 x 12Lh2 of the layers is s/6h, so that an honest HFU stays above
MFU / 1.5 up to sequences of three times the width."""

STAMPED_SHARE = 0.9
"""Share of steps times median step time that timestamps must span to give the duration. A median step may exceed the
mean by some percent; timestamps that miss more than that miss steps."""

GPU_POOR_SHARE = 0.5
"""Share of the memory of all accelerators above which those bytes make a question GPU-poor. Our reading of the term."""

RULE_NEAR = 0.02
"""Share of a cell's fastest throughput within which a layout counts as good as the fastest, so that a rule holds."""

RULE_NEARISH = 0.05
"""The same, less strictly."""

RULE_LAYOUTS = 5
"""Measured layouts that a cell needs to test a rule: the fastest of fewer was hardly searched for."""

MFU_LIMIT = 1.05
"""MFU above which a run's figures contradict each other: nothing exceeds its accelerator's peak, and peaks and printed
throughputs are rounded by less than this."""

SIXTEEN_BIT_MFU = 0.7
"""MFU in 16 bits above which a run that states no precision is taken to have used fewer, where its card can. The best
that is published in 16 bits on such cards is about 0.66 (Llama 3 8B on B200); matrix products alone reach some 0.8."""

MFU_DIFFERS = 0.05
"""Relative difference of a printed MFU from the recomputed one that calls for an explanation. Our choice: rounding of
both stays far below it."""

MFU_CAUSE = 0.01
"""Relative difference within which another convention or peak explains a printed MFU, which has two to four digits; a
cause that changes less than this explains nothing."""

EMBEDDING_CAUSE = 0.005
"""The same for an embedding that is counted twice, which is checked first and at full precision."""

LOW_TFLOPS = 0.9
"""Share of the recomputed TFLOP/s below which printed ones cannot be right: conventions count more, not less."""

LOW_HFU = 0.99
"""Share of the recomputed MFU below which a printed HFU, which counts more work, contradicts it."""

FRAGMENTATION_BYTES = 2**30
"""Allocated bytes from which a run's fragmentation counts: on an almost empty device the ratio means nothing."""

SNAPSHOT_GAP = 0.2
"""Share of a run's allocated peak that its snapshot may miss (another rank, a short record) for its parts to count."""

SNAPSHOT_UNKNOWN = 0.5
"""Share of that peak which may be blocks without a known purpose for the snapshot's parts to count."""

NOISE_PRIOR_FREEDOM = 4.0
"""Repeats that the bundled noise (`bundled_noise` in SQL) counts as: of more in a store, the store's own decide. Our
choice."""

USABLE_FOR_STATES = 0.9
"""Share of a card that weights, gradients and optimizer states may take. The rest is for the CUDA context, buffers and
a first activation. Our choice, on the careful side: in the bundled sweeps nothing above 0.87 completed."""

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

STALE_AFTER = timedelta(minutes=15)
"""A log without an ending that was written to more recently than this is `running`."""

STALE_PAUSES = 3
"""Times its own longest pause between steps for which such a log is `running`, too, if that is longer."""

COPIED_AFTER = timedelta(days=1)
"""Age of the last step's timestamp from which a log is a copy, however fresh its file: clocks differ by hours only."""

COPIED_AFTER_UNSTAMPED = timedelta(days=30)
"""The same of a log whose steps have no times: its last timestamp may be that of its start. Schedulers limit jobs to
days or weeks."""

# Findings on single runs; the modules of pipeline/logs/diagnostics state the rules.

DIVERGENCE_MEDIAN_STEPS = 5
"""Logged losses whose running median is compared with the best one so far: a shorter spike does not reach it."""

DIVERGENCE_LAST_STEPS = 10
"""Logged steps at the end of a run that must all lie above the limit before it has diverged."""

DIVERGENCE_MIN_STEPS = 20
"""Finite losses that a run needs before a rise is looked for."""

DIVERGENCE_SIGMAS = 8.0
"""Standard deviations of a single logged loss by which the median must exceed the best one. Our choice: noise alone
does not get there."""

DIVERGENCE_RISE_NATS = 0.5
"""Nats by which it must exceed the best one as well. Our choice."""

DIVERGENCE_RISE_SHARE = 0.2
"""Share of the best one by which it must exceed that as well. Our choice."""

NAN_GRAD_STEPS = 3
"""Steps with a NaN or infinite gradient norm from which it counts: a loss scaler causes single ones in healthy runs."""

SILENCE_S = 15 * 60.0
"""Seconds without a step from which a run may be silent. Our choice."""

LIVE_SILENCE_S = 60.0
"""Seconds without a written line before a running job is shown as silent, however fast it logs. Our choice."""

SILENCE_USUAL_PAUSES = 30
"""Times the median time between two logged steps that a silence lasts at least. Our choice."""

SILENCE_LONGEST_PAUSES = 3.0
"""Times the longest pause that the run survived before that a silence lasts at least, so that a checkpoint or an
evaluation like earlier ones is none. Our choice."""

SILENCE_MAX_AGE_S = 24 * 3600.0
"""Seconds since the last write after which a silent file is history: whether it hung or was ended is unknown."""

SILENCE_MIN_STEPS = 5
"""Steps with timestamps that a usual pause needs."""

CLOCK_TOLERANCE_S = 30.0
"""Seconds by which a file's last timestamp and its modification time may differ, beside a time zone's half hours."""

ZONE_TOLERANCE_S = 120.0
"""Seconds around whole hours within which a gap may be the difference of two clocks in different time zones."""

SLOWDOWN_FACTOR = 1.5
"""Times the earlier median cost of a step from which later steps are slower. Our choice."""

SLOWDOWN_P_MAX = 1e-3
"""Largest p of Pettitt's test for a change."""

SLOWDOWN_SIDE_STEPS = 5
"""Logged steps on either side of a change at least."""

SLOWDOWN_MIN_STEPS = 20
"""Logged steps that a run needs before a change is looked for."""

SLOWDOWN_MOST_STEPS = 400_000
"""Logged steps of a run that are looked at; of more, so many from everywhere: ranks of ten million take
half a gigabyte."""

SLOWDOWN_COVERAGE = 0.8
"""Share of the steps that must log a quantity before a change is looked for in it."""

STRAGGLER_FACTOR = 1.1
"""Times the fastest rank's (or the median rank's) time from which a rank is a straggler. Our choice."""

STRAGGLER_REPORTS_SHARE = 0.5
"""Share of a detector's reports that must name a rank as the slowest."""

STRAGGLER_MIN_RANKS = 3
"""Ranks that must print a step before they are compared."""

STRAGGLER_MIN_STEPS = 5
"""Such steps that a rank needs."""

HELD_STOPPED_S = 5 * 60.0
"""Seconds after a run's end from which its GPUs were held, where something had to stop the job. Our choice."""

HELD_ENDED_S = 30 * 60.0
"""The same where the job ended by itself: it may have evaluated or converted its checkpoint. Our choice."""

FOREIGN_BYTES = 2**30
"""Bytes of GPU memory of other processes from which they are mentioned."""

FOREIGN_SHARE = 0.05
"""Share of the card from which they are mentioned, if that is less."""

FOREIGN_CAUSE_SHARE = 0.1
"""Share of the card from which other processes may be the cause of an out-of-memory error. Our choice."""

FOREIGN_UNLISTED_BYTES = 4 * 2**30
"""Bytes that no listed process explains from which they are another's: a CUDA context and NCCL's buffers take less."""

FOREIGN_UNLISTED_SHARE = 0.1
"""Share of the card that they exceed as well."""

Z_95 = 1.959964
"""Two-sided 95 % quantile of the normal distribution."""

Z_80 = 1.281552
"""Two-sided 80 % quantile: from the median to the 10th or 90th percentile, in standard deviations."""

IDLE_UTILISATION = 0.05
"""Share of time with a kernel running up to which a sampled GPU counts as idle. A kernel that waits in NCCL counts as
running: a GPU below it waits for nothing on the device."""

IDLE_SAMPLES_S = 60.0
"""Seconds of samples without a busy GPU, at the end of a record, that are worth an entry: monitors sample every few
seconds, and a job needs some to end."""

THRESHOLDS = (
    Threshold("label_tolerance", LABEL_TOLERANCE, "relative difference beyond which shape and label name two models"),
    Threshold("gpu_poor_share", GPU_POOR_SHARE, "share of all memory above which those bytes make a question GPU-poor"),
    Threshold("rule_near", RULE_NEAR, "loss to the fastest layout up to which a rule holds"),
    Threshold("rule_layouts", RULE_LAYOUTS, "measured layouts that a cell needs to test a rule"),
    Threshold("mfu_differs", MFU_DIFFERS, "relative difference of printed and recomputed MFU that needs a cause"),
    Threshold("mfu_cause", MFU_CAUSE, "relative difference within which a cause explains a printed MFU"),
    Threshold("embedding_cause", EMBEDDING_CAUSE, "the same for an embedding counted twice"),
    Threshold("low_tflops", LOW_TFLOPS, "share of the recomputed TFLOP/s below which printed ones are wrong"),
    Threshold("low_hfu", LOW_HFU, "share of the recomputed MFU below which a printed HFU is wrong"),
    Threshold("fragmentation_bytes", FRAGMENTATION_BYTES, "allocated bytes from which fragmentation counts"),
    Threshold("snapshot_gap", SNAPSHOT_GAP, "share of the allocated peak that a snapshot may miss"),
    Threshold("snapshot_unknown", SNAPSHOT_UNKNOWN, "share of the allocated peak that may have no known purpose"),
    Threshold("noise_prior_freedom", NOISE_PRIOR_FREEDOM, "repeats that the bundled noise counts as"),
    Threshold("usable_for_states", USABLE_FOR_STATES, "share of a card that model states may take"),
    Threshold(
        "stamped_share", STAMPED_SHARE, "share of a duration that must be explained, or left unexplained, to count"
    ),
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
    Threshold("idle_utilisation", IDLE_UTILISATION, "share of time up to which a sampled GPU counts as idle"),
    Threshold("idle_samples_s", IDLE_SAMPLES_S, "seconds without a busy GPU at the end of a record that count"),
    Threshold("z_95", Z_95, "two-sided 95 % quantile of the normal distribution"),
    Threshold("z_80", Z_80, "two-sided 80 % quantile of the normal distribution"),
)

CP_TOKENS = 4096
"""Tokens of a sequence for each rank of context parallelism at least: below, it splits what one rank holds easily."""
