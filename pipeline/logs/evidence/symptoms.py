"""Patterns of lines about trouble in a run that does not end it.

They never decide the status; `pipeline.logs.diagnostics.diagnose` merges them into one finding per run. Sources:

- loss scalers: DeepSpeed runtime/fp16/loss_scaler.py and zero/stage3.py, apex amp/handle.py, Megatron's step line;
- fairseq's loss scaler, timm's and MAE's loops, and Lightning's detect_anomaly in training loops;
- NaN checks: Megatron-LM (assertions to 2024, then core/rerun_state_machine.py), Composer callbacks/nan_monitor.py;
- stragglers: Megatron core/utils.py StragglerDetector.report (also Heimdall), nvidia-resiliency-ext's callbacks for
  Lightning and Megatron-Bridge (scores from 0 to 1; their default threshold is 0.7);
- the CUDA runtime's cudaErrorDevicesUnavailable, nvidia-smi's table of processes, slurmstepd's step_terminate_monitor.
"""

from __future__ import annotations

SMI_PROCESS = r"^\|\s+(\d+)\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(\d+)\s+(?:C|C\+G|M\+C)\s+(\S.*?)\s+(\d+)MiB \|"
"""nvidia-smi's line of a computing process: GPU, process, name, MiB. Drivers before 450 lack two columns."""

SMI_KIND = "gpu_shared"

NRX_SCORE = r"Rank=(\d+) Node=(\S+) Score=([\d.]+)"
MEGATRON_SLOWEST = r"MnRtt/Rnk: ([\d.]+)ms/(\d+) \| MxRtt/Rnk: ([\d.]+)ms/(\d+)"


def _counts(word: str) -> tuple[str, ...]:
    """Literals of Megatron's counters above 0; every step line has them, right-aligned to three digits."""
    return tuple(f"number of {word} iterations:{' ' * blanks}{digit}" for blanks in (1, 2, 3) for digit in range(1, 10))


PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "skipped_step",
        ("OVERFLOW! ", "Gradient overflow.", *_counts("skipped")),
        r"OVERFLOW! (?:Rank \d+ )?Skipping step|Gradient overflow\.\s+Skipping step|"
        r"number of skipped iterations: +[1-9]",
    ),
    (
        "nan_loss",
        (
            *_counts("nan"),
            *("found NaN", "found Inf", "loss contains a NaN", "loss scale already at minimum"),
            *("Minimum loss scale reached", "The loss returned in ", ", stopping training"),
        ),
        r"number of nan iterations: +[1-9]|(?:[Ee]rror|Exception): .*found (?:NaN|Inf) in local|"
        r"RuntimeError: .*loss contains a NaN|(?:[Ee]rror|Exception): .*loss scale already at minimum|"
        r"FloatingPointError: Minimum loss scale reached|ValueError: The loss returned in `\w+` is (?:nan|inf)|"
        r"^\s?Loss is -?(?:nan|NaN|inf), stopping training",
    ),
    (
        "straggler",
        ("STRAGGLER DETECTION WARNING", "MnRtt/Rnk: ", " Score=0."),
        rf"STRAGGLER DETECTION WARNING: Some GPUs|{MEGATRON_SLOWEST}|^\s*Rank=\d+ Node=\S+ Score=0\.[0-6]",
    ),
    (
        "gpu_busy",
        ("busy or unavailable",),
        r"CUDA error: (?:all )?CUDA-capable device(?:s|\(s\)) (?:is/)?are busy or unavailable",
    ),
    (SMI_KIND, ("MiB |",), SMI_PROCESS),
    ("not_ending", ("DUE TO JOB NOT ENDING WITH SIGNALS",), r"STEPD TERMINATED .*DUE TO JOB NOT ENDING WITH SIGNALS"),
)
"""(kind of vocab.EVENT_KIND, literals of which a line holds one, expression): arguments of `patterns.Pattern`."""

KINDS: tuple[str, ...] = tuple(kind for kind, _, _ in PATTERNS)
