"""Closed vocabularies. A value outside its vocabulary is rejected, never guessed.

Add a word here (with its meaning) before any parser emits it. Order matters: it is the display order.
"""

from __future__ import annotations

STATUS: dict[str, str] = {
    "completed": "reached its last step; trouble afterwards does not undo it",
    "oom": "the GPU ran out of memory",
    "host_oom": "the host ran out of memory (Slurm oom_kill, kernel OOM killer)",
    "hang": "a collective watchdog timed out, or (low confidence) the run went silent",
    "nccl_error": "NCCL or the network reported an error",
    "crash": "an exception or a non-zero exit with evidence in the log",
    "timeout": "the scheduler's time limit ended it",
    "cancelled": "Ctrl-C, SIGTERM or scancel",
    "node_fail": "the scheduler reported a node failure",
    "preempted": "the scheduler preempted it",
    "running": "still being written when it was read",
    "truncated": "the log stops without a reason",
    "failed": "its source reports a failure without a reason",
    "unknown": "no evidence of how it ended",
}

OUTCOME: dict[str, str] = {
    "completed": "reached its last step",
    "held": "completed, then held its GPUs until something ended the job",
    "oom": "the GPU ran out of memory",
    "hang": "a collective hung",
    "infra": "node, network or preemption (node_fail, nccl_error, preempted)",
    "timeout": "the scheduler's time limit",
    "crash": "an exception, or the host ran out of memory (crash, host_oom)",
    "unexplained": "a failure without a reason (failed, truncated)",
    "undecided": "stopped by somebody, or without evidence (cancelled, unknown): no failure of the configuration",
    "running": "still being written",
}

DIMENSION: dict[str, str] = {
    "sweep": "the sweep itself: its total",
    "framework": "training framework",
    "model": "model",
    "accelerator": "accelerator",
    "num_nodes": "node count",
    "num_gpus": "accelerator count",
    "strategy": "parallel dimensions in use, such as DP+TP",
    "dp": "data-parallel replicas",
    "tp": "tensor-parallel degree",
    "pp": "pipeline stages",
    "cp": "context-parallel degree",
    "ep": "expert-parallel degree",
    "zero_stage": "ZeRO stage",
    "mbs": "micro-batch size",
    "gas": "accumulation steps",
    "recompute": "activation recomputation",
    "precision": "precision",
    "day": "date of the start",
    "host": "host; a run counts under each of its hosts",
}

STRETCH_CAUSE: dict[str, str] = {
    "slow_steps": "its steps alone take that long: a slow layout or a slow machine",
    "outside_of_steps": "the time went by before, between or after the steps: start-up, stalls, a hang",
    "unknown": "its steps were not logged",
}

GPU_HOURS_BASIS: dict[str, str] = {
    "given": "a scheduler or the source states it",
    "timestamps": "from the first to the last timestamp of the log",
    "steps": "steps times median step time: a lower bound, the log has no timestamps for them",
}

STEP_BASIS: dict[str, str] = {
    "step": "optimizer steps: as the trainer prints them, or as follows exactly from what it prints",
    "epoch": "optimizer steps computed from epochs that the trainer rounds: a few steps off at most",
    "whole_epoch": "epochs: the log numbers no steps",
    "batch": "batches of the data loader: with gradient accumulation, several make an optimizer step",
    "ordinal": "the number of the logged value: nothing tells which step it belongs to",
}
"""What the numbers of a run's steps count, the surest first."""

STEP_TIME_BASIS: dict[str, str] = {
    "steps": "median of the steady steps",
    "whole_run": "mean over the training, start-up, evaluations and checkpoints included: its trainer states no more",
    "summary": "mean or median of its measured steps, as its script states it at the end",
    "throughput": "tokens of a step over the tokens/s that the trainer states",
    "time_stamps": "median of the times between its lines of steps, by their time stamps: its trainer states no time",
}

FLOPS_BASIS: dict[str, str] = {
    "registered_shape": "6N + 12Lhs by the registered shape of the run's model, which the run does not contradict",
    "stated_shape": "6N + 12Lhs by the shape that the run states",
    "parameters_and_attention": "6N + 12Lhs with N as stated, and L and h of an otherwise incomplete shape",
    "assumed_shape": "6N + 12Lhs with N from layers, width and vocabulary, the rest as usual: to 20 % mostly",
    "parameters": "6N, without attention: a lower bound, the shape is unknown",
    "named_size": "6N, without attention, with N from the model's name (13B), which is rounded",
}

ORIGIN: dict[str, str] = {
    "measured": "parsed from raw logs of a real run",
    "published": "taken from a published table or figure, with its source",
    "simulated": "rendered by the bundled simulator; never a measurement",
}

CONFIDENCE: dict[str, str] = {
    "high": "an explicit, unambiguous line",
    "medium": "follows from two consistent signs",
    "low": "the best guess from weak evidence",
}

FRAMEWORK: dict[str, str] = {
    "nanotron": "huggingface/nanotron",
    "megatron": "NVIDIA Megatron-LM and its descendants (Bridge, Primus, ROCm)",
    "picotron": "huggingface/picotron",
    "torchtitan": "pytorch/torchtitan",
    "composer": "MosaicML Composer / llm-foundry",
    "megatron-deepspeed": "Megatron-DeepSpeed",
    "gpt-neox": "EleutherAI GPT-NeoX",
    "deepspeed": "DeepSpeed under a script of one's own (DeepSpeed-Chat)",
    "nemo": "NVIDIA NeMo",
    "lightning": "Lightning under a script of one's own",
    "hf-trainer": "Hugging Face transformers Trainer",
    "axolotl": "axolotl",
    "litgpt": "Lightning-AI litgpt",
    "internevo": "InternLM InternEvo",
    "torchtune": "pytorch/torchtune",
    "fms-fsdp": "IBM foundation-model-stack FSDP",
    "maxtext": "AI-Hypercomputer MaxText",
    "nanogpt": "karpathy/nanoGPT, modded-nanogpt and llm.c",
    "verl": "volcengine/verl (reinforcement learning and SFT)",
    "openrlhf": "OpenRLHF (reinforcement learning, preferences and SFT)",
    "colossalai": "hpcaitech/ColossalAI",
    "mlperf": "an MLPerf Training submission (framework in the notes)",
    "accelerate": "Hugging Face accelerate's examples",
    "axlearn": "apple/axlearn",
    "bmtrain": "OpenBMB BMTrain and CPM-Live",
    "detectron2": "facebookresearch/detectron2",
    "diffusers": "training scripts of Hugging Face diffusers",
    "espnet": "ESPnet 2 and FunASR",
    "ezpz": "saforem2/ezpz",
    "fairseq": "facebookresearch/fairseq and metaseq",
    "icefall": "k2-fsa/icefall",
    "levanter": "stanford-crfm/levanter",
    "lingua": "facebookresearch/lingua",
    "llama-cookbook": "meta-llama/llama-cookbook (llama-recipes)",
    "minimind": "jingyaogong/minimind",
    "mmengine": "OpenMMLab's mmengine and mmcv, xtuner up to 0.2",
    "ms-swift": "ms-swift's Megatron trainer",
    "olmo": "allenai/OLMo",
    "olmo-core": "allenai/OLMo-core",
    "open_lm": "mlfoundations/open_lm",
    "paddlenlp": "PaddleNLP and PaddleFormers",
    "paxml": "google/paxml",
    "pytorch-examples": "PyTorch's examples and projects with their training loops",
    "sat": "SwissArmyTransformer: GLM, CogVLM, CogVideo",
    "sd-scripts": "kohya-ss/sd-scripts",
    "timm": "huggingface/pytorch-image-models",
    "ultralytics": "Ultralytics YOLO",
    "yolov5": "YOLOv5 and YOLOv7",
    "xtuner": "InternLM xtuner from version 1 on",
    "other": "a framework without a parser of its own",
}

DECLARED_FRAMEWORK = r"[a-z][a-z0-9._-]{0,39}"
"""What a dialect file may call its framework, beside the words above."""

RECOMPUTE: dict[str, str] = {
    "none": "activations are kept",
    "selective": "only attention internals are recomputed",
    "full": "each layer is recomputed in the backward pass",
}

PRECISION: dict[str, str] = {
    "bf16": "bfloat16 compute",
    "fp16": "float16 compute",
    "fp32": "float32 (or TF32) compute",
    "fp8": "FP8 matrix products",
    "mxfp8": "microscaling FP8",
    "fp4": "FP4 matrix products",
    "int8": "INT8 matrix products",
    "fp64": "float64 compute",
    "unclear": "the source leaves it open (for example FP8 or FP4), so no peak can be chosen",
}

FILE_KIND: dict[str, str] = {
    "log": "a training log",
    "history": "steps that a trainer keeps in a file of its own (trainer_state.json, metrics.csv)",
    "tracker": "what an experiment tracker keeps of several runs (mlflow.db, mlruns, trackio, W&B's exports)",
    "config": "a run configuration",
    "status": "a one-word status file",
    "bench_csv": "a table with a row per run, of a trainer's benchmark or of somebody's own",
    "scheduler": "a scheduler's table of jobs (sacct, squeue, scontrol, kubectl)",
    "nccl": "NCCL output and nothing of a training run: NCCL_DEBUG_FILE, nccl-tests",
    "flight_record": "a dump of PyTorch's flight recorder",
    "memory": "a GPU memory artefact: allocator snapshot or statistics, memory timeline, profiler trace",
    "statements": "a sweepscope.toml: what the user states of runs whose logs do not say it",
    "archive": "a tar or zip archive; its files have rows of their own",
    "published": "a bundled table of published results",
    "other": "present in a run directory, not read",
    "unknown": "no parser recognises it",
}

FILE_STATUS: dict[str, str] = {
    "parsed": "read to its end and recorded",
    "skipped": "known and not needed (see `error` for the reason)",
    "rejected": "could not be read as anything (see `error`)",
    "duplicate": "holds what another file holds, which counts instead (see `error`)",
    "overwritten": "what the file `former_path` held before other content took its place; its rows stay",
    "rotated": "a part of the log `former_path` that is no longer there; its rows stay",
    "shrunk": "became shorter than it was when it was read; the rows of that reading stay",
    "failed": "could not be read this time (see `error`); the rows of an earlier reading stay",
    "unread": "left for the next ingest because of another file of its run (see `error`); earlier rows stay",
    "gone": "no longer there; its rows stay",
}

FINDING: dict[str, str] = {
    "claimed_best_not_fastest": "another layout of the cell has more tokens/s/GPU than the one presented as best",
    "claimed_best_not_ranked": "the layout presented as best rests on a run that may not be ranked",
    "tied_embedding_counted_twice": "the printed MFU fits only when the shared embedding is counted twice",
    "label_shape_mismatch": "the parameters of the shape are not those of the label",
    "wrong_peak": "the printed MFU divides by another peak than the accelerator's dense one at that precision",
    "other_convention": "the printed MFU counts other FLOPs: no attention, half of it, no embedding, recomputation",
    "logged_mfu_differs": "the printed MFU is more than 5 % off the recomputed one, and nothing above explains it",
    "logged_tflops_differ": "the printed TFLOP/s are more than 10 % below those that tokens/s and the shape imply",
    "mfu_above_100": "an MFU above 100 % of the peak",
    "hfu_below_mfu": "the printed HFU is below the recomputed MFU, which counts less work",
    "layout_mismatch": "dp x tp x pp x cp is not the number of accelerators",
    "batch_mismatch": "dp x gas x mbs is not the global batch",
    "not_recomputable": "MFU cannot be recomputed; the detail names the columns that are missing",
    "not_comparable": "the published figure follows another convention or is derived",
}

SETTING_SOURCE: dict[str, str] = {
    "config_file": "a configuration file beside the log",
    "argument_dump": "the framework's own print of its arguments",
    "log_line": "a line of the log",
    "scheduler": "the scheduler's table",
    "command_line": "the launch command echoed in the log",
    "named_config": "a configuration file that the launch command names, wherever it lies",
    "launch_script": "the command in a launch script beside the log of a trainer that is known",
    "dialect_file": "a constant of a dialect file: what somebody states of logs that do not print it",
    "stated": "what the user states of runs whose logs do not say it; what logs and configurations say counts more",
    "stated_override": "what the user states to count more than what logs and configurations say",
    "folder_name": "the run directory's name",
    "published_table": "a column of a published table",
    "result_table": "a row of somebody's table of results",
    "derived": "computed from other settings",
    "assumed": "a documented default, stated in no file",
}

CHANGE_VERDICT: dict[str, str] = {
    "slower": "slower by more than 1.96 standard deviations of the difference: a regression",
    "faster": "faster by more than that",
    "noise": "within it",
}

NOISE_BASIS: dict[str, str] = {
    "own_repeats": "its own repeats, drawn towards those of others",
    "framework": "repeats of other layouts of the framework, on the same cluster and as many nodes",
    "cluster": "repeats of other frameworks on the same cluster and as many nodes",
    "nodes": "repeats on as many nodes of other clusters",
    "steps": "steps of the run itself: their median cannot be told better",
    "bundled": "bundled sweeps on as many nodes: this store has no repeat there",
}

CELL_STATE: dict[str, str] = {
    "measured": "at least one run completed",
    "impossible": "no layout of these GPUs can satisfy the filter",
    "wont_fit": "predicted: sharded states alone exceed the card",
    "oom": "every try ran out of GPU memory",
    "host_oom": "every try ran out of host memory",
    "hang": "every try hung",
    "timeout": "every try hit its time limit",
    "infra": "node, network or preemption ended every try",
    "failed": "tries failed, for mixed or unknown reasons",
    "quarantined": "runs completed, but none may be ranked",
    "cancelled": "every try was cancelled",
    "running": "a try is still running",
    "not_run": "no run was tried",
}

EVENT_KIND: dict[str, str] = {
    "oom": "GPU out of memory",
    "host_oom": "host out of memory",
    "hang": "collective watchdog timeout",
    "nccl_error": "NCCL or network error",
    "traceback": "first line of a Python traceback",
    "exception": "the exception a traceback ends with",
    "ignored_exception": "an exception that Python passed over, in a finalizer or at exit",
    "child_failed": "torchrun's summary of failed workers",
    "worker_failed": "a failed worker in torchrun's table, with its rank, host and time",
    "rendezvous": "nodes did not find each other when torchrun started",
    "exit_code": "a launcher or scheduler reports an exit code",
    "sigkill": "a process was killed (SIGKILL)",
    "sigterm": "a process was asked to stop (SIGTERM)",
    "interrupted": "Ctrl-C",
    "timeout": "scheduler time limit",
    "cancelled": "scheduler cancelled the job",
    "node_fail": "node failure",
    "preempted": "job preempted or requeued",
    "training_end": "the trainer reports that it finished",
    "finished": "a script says that it is done, which counts behind its last step",
    "tracker_closed": "the run's tracker says that its process ends, in whatever way",
    "epilogue": "lines that the trainer prints only behind its last step",
    "aborted": "the trainer reports that it stopped before its goal",
    "launch": "a launcher or trainer starts (a new attempt)",
    "run_header": "a script states the settings of the run that it launches next (a new attempt)",
    "job": "the scheduler's job that prints what follows",
    "status_file": "content of the run directory's status file",
    "scheduler": "a scheduler's table on the job that the run was",
    "config_conflict": "two sources disagree on a setting",
    "inconsistent": "values that cannot all be true",
    "nan_loss": "loss is NaN or infinite",
    "skipped_step": "steps skipped because gradients were NaN or infinite",
    "diverged": "the loss rose and did not come back",
    "silence": "no step for many times the usual step time",
    "slowdown": "steps took much longer from some step on",
    "straggler": "a rank or host slower than the others",
    "held_after_end": "GPUs were held long after the last step",
    "oom_by_others": "GPU memory ran out that other processes held",
    "gpu_shared": "other processes held memory of the GPU",
    "gpu_busy": "the GPU was not to be had: another process holds it",
    "not_ending": "processes outlived the signals that should have ended them",
    "ended": "the source's own word on how the run ended",
    "unread": "the last line of a training's log of which no line is known",
}

HEALTH_FINDINGS: tuple[str, ...] = (
    *("diverged", "nan_loss", "held_after_end", "oom_by_others", "gpu_busy", "slowdown", "straggler", "silence"),
    *("gpu_shared", "not_ending", "skipped_step"),
)
"""Kinds of events that tell what went wrong in a run besides how it ended, the costliest first: one event per run and
finding (of stragglers: per rank), with its figures."""

REJECT_REASON_UNPARSED = "looks like a metric line but did not parse"

REJECT_REASON_KEPT = "the values were kept"
"""Beginning of the reasons of values that look wrong and stay where they are, for they are what the file states."""

REJECT_REASON_LEFT_OUT = "the value was left out"
"""Beginning of the reasons of values that become NULL while the rest of their row is kept."""
