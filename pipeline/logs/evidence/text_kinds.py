"""Whether a text that no dialect reads is the output of a training all the same: one that died early, or an odd one.

A training is asked for by its traces: how it was launched, what its libraries raised, what it speaks of. A text that is
something else shows that in most of its lines, whatever it speaks of: a README tells of losses, and pip of torch.
Sources of the wording: pip and uv, conda, apt; make, ninja, CMake, nvcc and setuptools; wget, curl, git and
huggingface_hub; nvidia-smi, top and free; Slurm's sbatch and squeue; wandb's debug logs, Ray's and Jupyter's services.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from sweepscope.pipeline.text.word_boundaries import ascii_bounded

NOTHING_TELLS = "nothing in it tells of a training"
"""Reason of a text that may be the log of a training all the same."""

_MOST = 0.8
"""Of the lines, which make a text what they are."""
_HALF = 0.5
"""Of the lines, enough together with a plain sign."""
_WORDS = 3
"""Different subjects of trainings that a text of nothing else speaks of."""
_FEW_WORDS = 2
"""As many are enough in a program's output. A name alone says nothing: downloads, evaluations and servers log, too."""
_SPOKEN_SHARE = 0.05
"""Of the lines of a text, which speak of trainings: any long one has some of the words."""
_MARKS = 2
"""Headings, links and fences of a document at least."""
_FEW_LINES = 3
"""A text has to be longer than this to be known by what its lines look like, rather than by what they say."""
_SHOWN_CHARS = 80
"""Of the last line, which tells a reader of the ledger what the text is."""
_FEW_ITEMS = 20
"""A program's output has to be longer than this to be a list."""

_SAMPLES, _SCHEDULER, _NCCL = "samples of a machine's state", "a scheduler's words", "NCCL's output"
_ABOUT_RUNS = (_SCHEDULER, _NCCL)
"""They tell how a training failed, without anything else of it."""

_COMPILER = r"(?:\S*/)?(?:c\+\+|cc|g\+\+|gcc|clang(?:\+\+)?|nvcc|hipcc|ld|ar|ninja|cmake)(?:-\d+)? "

_TOOLS = {
    "an installation of packages": (
        r"^\s*(?:Collecting|Requirement already|Using cached|Attempting uninstall|Found existing|Uninstalling) ",
        r"^\s*(?:Successfully (?:installed|uninstalled|built)|Installing (?:collected|build)|Looking in indexes)",
        r"^\s*(?:Building wheels?|Created wheel|Stored in directory|(?:Preparing|Getting) (?:metadata|requirements))",
        r"^\s*Downloading \S+(?:\.whl|\.tar\.gz|\.zip| \(\d)|[━]{8}.* \d[\d.]*/\d[\d.]* [kMG]i?B ",
        r"^(?:Resolved|Prepared|Installed|Audited|Uninstalled) \d+ packages?| [+~-] [\w.-]+==\S+$",
        r"^(?:Get|Hit|Ign|Err):\d+ |^(?:Reading package lists|Building dependency tree|Selecting previously)",
        r"^(?:Preparing to unpack|Unpacking |Setting up \S+ \(|Processing triggers|Solving environment)",
        r"^(?:Preparing|Verifying|Executing) transaction|^added \d+ packages|Running pip as|^\[notice\]",
    ),
    "a build": (
        rf"^\s*(?:\[\s*\d+(?:/\d+|%)\] )?(?:{_COMPILER}|Building \S+ object|Linking |Built target |Scanning dep)",
        r"^make(?:\[\d+\])?: [A-Z'`]|^CMake |^-- (?:The|Check|Found|Looking|Performing|Detecting|Generating)",
        r"^running (?:build|install|egg_info|bdist|sdist|develop)|^building '|^copying \S+ -> |^creating \S*build",
        r"^(?:writing|reading) \S.*\.egg-info|^adding '|^ptxas info|^In file included from|^\s+from \S+:\d+",
        r"^\S+:\d+:\d+: |^\S+(?::\d+|\(\d+\)): (?:warning|error|note)|^\s*\d+ \| |^\s+\|\s+[\^~]|^\s+\^~*$",
        r"^\s*(?:Compiling|Finished) \S+ |^(?:Emitting ninja|Allowing ninja|Detected CUDA files)",
    ),
    "a download": (
        r"\b\d[\d.]*\s?[kKMG]i?B/s|^--\d{4}-\d\d-\d\d .*https?://|saved \[\d|^Fetching \d+ files|^Downloading ",
        r"^(?:Resolving|Connecting to|Saving to|Length|Location|Reusing existing connection)\b|^HTTP request sent",
        r"^(?:Cloning into|remote|Receiving objects|Resolving deltas)\b|^\s*% Total|^\s*\d+K[ .]+ \d+%",
    ),
    _SAMPLES: (
        r"^(?:\|.*\||\+[-=+]+\+|\|?[-=+]+\|?)$|^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w+ +\d|^\s+\d+(?: +[\d.-]+){4,}$",
        r"^(?:top - |Tasks: |%Cpu|[KMG]iB (?:Mem|Swap)|(?:Mem|Swap|Total): +\d|\s*total +used +free|# gpu +|procs -)",
    ),
    _SCHEDULER: (
        r"^(?:srun|sbatch|salloc|slurmstepd|scancel|squeue)\b.*:|^Submitted batch job|^Job <\d+>|^qsub:|^<<\w",
        r"^\s*JOBID\b|^\s*\d+\S* +\S+ +\S+ +\S+ +(?:R|PD|CG|CD|F|CA|TO) +|^job \d+ (?:queued|has been)",
    ),
    "the log of a service": (
        r"\[wandb_\w+\.py:|\bwandb(?:-core|\.sdk)\b|\"(?:msg|message)\":\"(?:stream|handler|sender|wandb)",
        r"\b(?:raylet|gcs_server|plasma|kubelet|dockerd)\b|\(autoscaler\)|\[[IWE] [\d: .-]+ \w*App\]|\bsystemd\[\d+\]",
        r"^TensorBoard \d|\blevel=(?:info|warning|error|debug)\b.*\bmsg=",
    ),
    _NCCL: (
        r"\bR?N?CCL (?:INFO|WARN|TRACE|version)",
        r"^# (?:nThread|nccl-tests|Rank|Using devices| +size|Avg bus)|^\s*\d+ +\d+ +\w+ +(?:sum|prod|none)",
    ),
}
"""What lines of programs look like that train nothing."""

_MONITORS = r"NVIDIA-SMI|^top - |%Cpu|buff/cache|ROCm System|^# gpu |MiB Mem|^procs -"
_MARKDOWN = r"^#{1,6} \w|^```|\]\(\S+\)"
_STAMP = r"\b\d{1,2}:\d\d:\d\d\b|\b(?:INFO|DEBUG|WARNING|WARN|ERROR|CRITICAL)\b"

_VERSION = r"[=<>!~]=?(?:[^\s:=]+(?:=[^\s:=]+)?|[^:=]*(?:[<>!~]=?[^:=]*)*)"  # no more signs: they are values of a step
_PACKAGE = rf"^\s*(?:#.*|-[-\w]+ \S+|[\w.-]+(?:\[[\w,.-]+\])?\s*(?:{_VERSION})?(?:;.*)?(?:\s+#.*)?)$"
_ITEM = r"^\s*\S+\s*$"
_NUMBERS = r"^[\s\d.,;:eE+|/-]+$|^\s*[\w./-]+(?:[\t ,;|]+-?[\d.]+(?:e[+-]?\d+)?%?){2,}\s*$"
_TRACEBACK = r"^\s?Traceback \(most recent call last\)"
_DIED = rf"{_TRACEBACK}|^\s*[\w.]*(?:Error|Exception)\b:|^make(?:\[\d+\])?: \*\*\*|^srun: error:"
_CODE_BEGIN = r"^(?:import \w|from \S+ import |\s*def \w+\(|#!/|#SBATCH )"
_CODE = (
    r"^\s*(?:import \w|from \S+ import |(?:async )?def \w+\(|class \w+.*:|return\b|@\w|#|export \w+=|set -\w|"
    r"(?:if|elif|for|while|with|try|else|except)\b.*[:;]|(?:then|do|fi|done|pass|continue|break)$|[\])}]+,?$|"
    r"[\w.\[\], ]+ ?[-+*/]?= ?\S|[\w.]+\(.*\)(?:;.*)?$|[\w\"']+\s?[=:] .*,$)"
)
_PROSE = (
    r"^\s*(?:#{1,6} \S|[-*+] [A-Z`\[*]|```|>|\|.*\||<[/a-z]|!?\[[^\]]*\]\(|\d+\. [A-Z])|"
    r"^\s*(?:[A-Za-z`\"'(*_][\w`\"'()*/-]*[,.;:]? +){4,}[\w`\"'()*/.-]+[.,:;!?]?\s*$"
)

_SCRIPT = r"(?i)(?:train|finetun|fine_tun|pretrain|sft|dpo|grpo|ppo|rlhf|lora|gpt|llama|bert|trainer)\w*\.(?:py|sh)"
_LIBRARY = (
    r"/(?:site|dist)-packages/(?:torch|transformers|accelerate|datasets|deepspeed|lightning|pytorch_lightning|trl|peft|"
    r"jax|flax|optax|tensorflow|keras|megatron|nemo|composer|colossalai|torchtitan|torchtune|litgpt|axolotl|fairscale|"
    r"fairseq|bitsandbytes|xformers|apex|transformer_engine|vllm|ray/train)/"
)
_BUILDING = r"(?:setup\.py|cpp_extension\.py|setuptools|/pip/|pip-build|build_ext|conda)"

_TRACES = (
    rf"\b(?:torchrun|deepspeed|accelerate launch|torch\.distributed\.(?:run|launch)|composer|litgpt|tune run)\b.*\.py|"
    rf"\b(?:srun|mpirun|mpiexec|python[\d.]*|sh|bash)\b.*{_SCRIPT}|^\s*File \".*{_SCRIPT}\"|^\s*File \".*{_LIBRARY}|"
    rf"can't open file .*\.py|^usage: .*\.py |{_SCRIPT}: error: |`accelerate launch`|^\s*Setting OMP_NUM_THREADS|"
    r"\bRendezvousHandler\b|init_process_group|torch\.distributed\.elastic|\bStarting elastic_operator\b"
)
"""Lines of a training that was launched."""

_VOICES = (
    r"^\[(?:transformers|accelerate|trl|peft|datasets)\] |\breal_accelerator\.py:\d+|/(?:site|dist)-packages/torch/"
)
"""Loggers and warnings of libraries of trainings."""

_BEGUN = r"^\s*0%\|[^|]*\| 0/\d+ \[00:00<\?, \?(?:it/s|s/it)\]?\s*$"
"""tqdm's bar (std.py format_meter) of a loop without a name, before its first step. Downloads have a name, or units."""

_SPOKEN = {
    "epoch": r"(?i)\bepochs?\b",
    "step": r"(?i)\b(?:global_?)?(?:steps?|iter(?:ation)?s?)\b[\s:=#]*\[?\d",
    "loss": r"(?i)\b(?:\w*_)?loss\b|\bperplexity\b|\bppl\b",
    "rate": r"(?i)\blearning[ _-]?rate\b|\blr\b",
    "optimizer": r"(?i)\boptimi[sz]er|\badamw?\b|\bmuon\b|\bscheduler\b",
    "batch": r"(?i)\bbatch[ _-]?size|\bmicro[ _-]?batch|\bgrad(?:ient)?[ _]accum",
    "gradient": r"(?i)\bgrad(?:ient)?[ _-]?norm|\bgradients?\b",
    "training": r"(?i)\b(?:pre-?|fine-?)?(?:train|tun)(?:ing|er)\b|\btrain_\w+",
    "parallel": r"(?i)\b(?:world[ _]size|ddp|fsdp|zero[ -]?[123]|(?:tensor|data)[ _]parallel|nccl|local_rank)\b",
    "model": r"(?i)\bparam(?:eter)?s\b|\bhidden_size\b|\bnum_layers\b|\bcheckpoint(?:s|ing)?\b",
}
"""What trainings speak of."""

_OF_TRAINING = ("epoch", "loss", "rate", "optimizer", "gradient", "training")
"""Subjects that only a training has: models that are served or asked have steps, batches and processes, too."""

_USE = (
    r"(?i)\bTTFT\b|time to first token|\b(?:prefill|decode)\b.*\b(?:tps|tok(?:en)?s?/s|latency|throughput)\b|"
    r"\bUvicorn running on\b|\bApplication startup complete\b|/sglang/srt/|"
    r"/vllm/(?:v1/)?(?:engine|entrypoints|worker|executor)/|"
    r"\*{3,} Running Prediction \*{3,}|\bwriting predictions\b"
)
"""Lines of a trained model's use: of servers, of their measurement, and of predictions."""
_LEAST_USE = 2


@dataclass(frozen=True)
class TextKind:
    """What a text was taken for.

    Attributes:
        is_training: the output of a training; None if neither that nor anything else is sure.
        reason: why not; "" for a text without any line.
        has_begun: its last line is a bar that had not moved yet.
        last_line, last_text: its last line that is not empty.
        subjects: how many different things it speaks of that trainings speak of.
    """

    is_training: bool | None
    reason: str = ""
    last_line: int = 0
    last_text: str = ""
    subjects: int = 0
    has_begun: bool = False

    @property
    def speaks_of_training(self) -> bool:
        """Whether its words alone tell that it is one."""
        return self.subjects >= _WORDS


def kind_of(
    sample: pl.DataFrame, *, is_named_log: bool, is_named_training: bool = False, is_training_log: bool = False
) -> TextKind:
    """What a text is.

    Args:
        sample: `line_no`, `text` of its cleaned lines, those of the end among them.
        is_named_log: it has the name of a program's output. Then a traceback is that of a training, and
            fewer words tell of one.
        is_named_training: its name says that it is that of a training. Then a bar that had not moved is the training's.
        is_training_log: its name says that it is the log of one, and that no data is in it. Then any time of a logger
            or word of a training will do: it may have died while it loaded its data.
    """
    rows = sample.filter(pl.col("text").str.strip_chars() != "")
    if rows.is_empty():
        return TextKind(None)
    text = rows["text"]
    spoken = [_matches(text, pattern) for pattern in _SPOKEN.values()]
    last = *rows.select("line_no", "text").row(-1), sum(bool(lines.any()) for lines in spoken)
    is_launched = _any(text, _TRACES, without=_BUILDING)
    if (tool := _tool(text, is_launched=is_launched)) is not None:
        return TextKind(None if tool in _ABOUT_RUNS else False, f"it is {tool}", *last)
    is_of_training = any(bool(lines.any()) for name, lines in zip(_SPOKEN, spoken, strict=True) if name in _OF_TRAINING)
    is_used = not (is_of_training or is_launched) and int(_matches(text, _USE).sum()) >= _LEAST_USE
    used = "the use of a model that was trained before" if is_used else None
    if (look := used or _look(text, is_named_log=is_named_log, is_launched=is_launched)) is not None:
        return TextKind(False, f"it is {look}", *last)
    found = TextKind(True, "", *last)
    has_died = is_named_log and _any(text, _DIED)
    speaks = found.subjects >= _FEW_WORDS if is_named_log else found.speaks_of_training and _is_full_of(spoken)
    is_output = is_training_log and (found.subjects > 0 or _any(text, _STAMP))
    if is_launched or has_died or speaks or is_output:
        return found
    if is_named_training and _any(text.tail(1), _BEGUN) and _any(text, _VOICES):
        return replace(found, has_begun=True)
    shown = found.last_text.strip()[:_SHOWN_CHARS]
    return TextKind(None, f"{NOTHING_TELLS}; its last line: {shown}", *last)


def _tool(text: pl.Series, *, is_launched: bool) -> str | None:
    """The program, other than a trainer, that printed most lines of a text, or of one without a launch the most."""
    found = {name: _matches(text, "|".join(patterns)) for name, patterns in _TOOLS.items()}
    if not _any(text, _MONITORS):
        found.pop(_SAMPLES)
    first = max(found, key=lambda name: _share(found[name]))
    any_tool = pl.select(pl.any_horizontal(pl.lit(lines) for lines in found.values())).to_series()
    return first if _share(found[first] if is_launched else any_tool) >= _MOST else None


def _look(text: pl.Series, *, is_named_log: bool, is_launched: bool) -> str | None:
    """What the lines of a text look like, if no program prints such."""
    lines, prose = text.len(), _share(_matches(text, _PROSE))
    has_stamps = _any(text, _STAMP)
    has_code = _any(text, _CODE_BEGIN) and not _any(text, _TRACEBACK)
    is_open = not (is_launched or has_stamps)
    looks = {
        "a document": int(_matches(text, _MARKDOWN).sum()) >= _MARKS and prose >= _HALF,
        "the source of a program": has_code and not has_stamps and _share(_matches(text, _CODE)) >= _HALF,
        "a list of packages": is_open and _share(_matches(text, _PACKAGE)) >= _MOST,
        "a list": is_open and _share(_matches(text, _ITEM)) >= _MOST and not (is_named_log and lines <= _FEW_ITEMS),
        "a table of numbers": is_open and _share(_matches(text, _NUMBERS)) >= _MOST,
        "prose": is_open and not is_named_log and prose >= _MOST,
    }
    return next((look for look, is_so in looks.items() if is_so and lines > _FEW_LINES), None)


def _is_full_of(spoken: Sequence[pl.Series]) -> bool:
    """Whether more than a few lines are among those that speak of something."""
    return _share(pl.select(pl.any_horizontal(pl.lit(lines) for lines in spoken)).to_series()) >= _SPOKEN_SHARE


def _any(text: pl.Series, pattern: str, *, without: str | None = None) -> bool:
    lines = text.filter(_matches(text, pattern))
    return not lines.is_empty() and (without is None or not _matches(lines, without).all())


def _matches(text: pl.Series, pattern: str) -> pl.Series:
    return text.str.contains(ascii_bounded(pattern))


def _share(lines: pl.Series) -> float:
    return int(lines.sum()) / lines.len()
