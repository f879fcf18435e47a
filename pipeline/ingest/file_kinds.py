"""Kinds of files (vocab.FILE_KIND), from their names alone."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase, translate
from functools import cache

from sweepscope.pipeline.io.archives import is_archive
from sweepscope.pipeline.io.number_tables import SUFFIXES as NUMBER_TABLES
from sweepscope.pipeline.logs.declared.statements import NAME
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.memory.names import is_memory_file
from sweepscope.pipeline.scheduler.registry import is_named_so

PBS_STREAM = re.compile(r"\.p?[oe](\d{3,}(?:\[\d+\])?)")
"""Suffixes of PBS and SGE: train.o410022, train.e410022; train.po410022 of SGE's parallel environments."""
EARLIER = re.compile(
    r"(?P<log>(?:.+\.)?(?:logs?|out|err|stdout|stderr))[._-]"
    r"(?P<which>old|bak|backup|orig|prev|previous|saved?|(?:rank|node)[._-]?\d+|\d[\d_.t-]*)"
)
"""Names of logs that somebody has put aside, `train.log.old`, `train.log.2025-03-04_09-12`, or that are of a rank."""

_LOG_SUFFIXES = {".log", ".logs", ".lst", ".out", ".output", ".err", ".stderr", ".stdout", ".txt", ".ipynb"}
RECORD_SUFFIXES = (".jsonl", ".ndjson")
_OF_TRAINING = re.compile(
    r"(?:^|[^a-z])(?:metrics?|(?:dl|nv|job)?(?:logs?|logger)|stats?|statistics|history|progress|scalars?|steps?|"
    r"loss(?:es)?|telemetry|journal)(?:[^a-z]|$)"
)
"""In the name of a file of records that a training writes; others (`train.jsonl`) hold what it reads."""
_OF_DATA = re.compile(
    r"(?:^|[^a-z])(?:train|test|val(?:id(?:ation)?)?|dev|eval|data(?:set)?s?|corpus|sft|dpo|pref\w*|prompts?|samples?|"
    r"questions?|answers?|instruct\w*|chats?|conversations?|generat\w*|predict\w*|shard|part|chunk|split)(?:[^a-z]|$)"
)
"""In the name of a file of records that a training reads, or that a model has written."""
_UNNAMED_LOG = re.compile(
    r"(?:std(?:out|err)|console|output|nohup)(?:[._-][\w-]*)?|(?:[\w-]*[_-])?logs?(?:[_-][\w-]*)?|"
    r"(?:rank|worker|node|host|pod)[._-]?\d+|0000\d\d|workerlog|"
    r"(?:train|run|exp|job|out|err(?:or)?|screen|slurm|my)?log(?:file|s)?|cout|cerr|typescript"
)
"""Names of logs without a suffix: what Open MPI's `--output-filename`, shells' redirections, exports of CloudWatch
(`000000.gz`), PaddlePaddle's launcher (`workerlog.0`), GNU screen (`screenlog.0`) and script leave."""
_DOCUMENT_SUFFIXES = {".json", ".yaml", ".yml", ".toml", ".gin"}
_CODE_CONFIGURATION = re.compile(r"(?:.*[._-])?(?:config(?:uration)?|conf|cfg|hparams|hyper_?params)(?:[._-].*)?\.py")
"""Names of configurations that are Python code; the model's own are modules of a library."""
_CONFIGURATION = re.compile(
    r"(?:^|[._-])(?:config(?:uration)?|conf|cfg|args|arguments|hparams|hyper_?param(?:eter)?s|params|opts?|options|settings)"
    r"(?:[._-][\w.-]*)?\.(?:json|ya?ml|toml|gin)$|(?:^|[._-])(?:run|exp|experiment|train|training|job|hydra)\.(?:ya?ml|toml)$"
)
"""Names of configurations; a `train.json` is data."""
_LAUNCH_SCRIPT = re.compile(
    r"(?:^|.*[._-])(?:cmd|command|run|train(?:ing)?|pretrain(?:ing)?|finetune|sft|launch|submit|start|job|sbatch)"
    r"(?:[._-][\w.-]*)?\.(?:sh|sbatch|slurm)"
)
"""Names of scripts with the command of a training."""
_OF_OTHERS = re.compile(r"tokenizer|generation|processor|adapter|quant|eval|package|compiler|vocab|special_token|index")
"""In names of configurations that are none of a training."""
_MOST_CONFIG_BYTES = 256_000
"""Of a configuration that only its place says to be one."""
_OF_OTHER_WORK = re.compile(r"(?<![a-z])(?:test|infer|serve|convert|prepare|data|setup|install)")
"""In names of scripts that train nothing."""
TABLE_SUFFIXES = (".csv", ".tsv")
_REPORT_SUFFIXES = (".md", ".markdown", ".rst", ".xlsx")
"""Of documents and workbooks, in which people keep tables of results."""
_TABLE_OF_STEPS = re.compile(
    r"(?:train(?:ing)?[-_])?(?:logs?|metrics|progress|loss(?:es)?|stats|steps|history|train(?:ing)?[-_]?(?:log|loss|steps))|"
    r"training|"
    r"(?!.*(?:eval|valid|test|gpu|cpu|smi|dcgm|sys|mem|power|net|bench|result|summary|sweep|runs)).+[-_.]"
    r"(?:logs?|metrics|progress|loss(?:es)?)"
)
"""Names of tables with a row for each step; others are tables of runs, of GPU samples or of benchmarks."""
_OF_RESULTS = re.compile(
    r"(?:^|[^a-z])(?:results?|summary|sweeps?|runs|bench(?:mark)?s?|trials|experiments|throughputs?)(?:[^a-z]|$)"
)
"""In names of records with a row for each run; `eval_results.json` is another thing."""
_COMPRESSED = {".gz", ".zst"}
_NEVER_LOGS = {
    "readme.txt",
    "requirements.txt",
    "license.txt",
    "constraints.txt",
    "merges.txt",
    "vocab.txt",
}


def file_kind(name: str, dialects: Sequence[Dialect] = DIALECTS, *, histories: bool = True) -> str:
    """Kind of a file from its name alone; without `histories`, its kind when it is not read as steps.

    >>> file_kind("log_410022.out"), file_kind("config.json"), file_kind("model.safetensors")
    ('log', 'config', 'other')
    >>> file_kind("results.csv"), file_kind("sweep_results.jsonl"), file_kind("eval_results.json")
    ('bench_csv', 'bench_csv', 'other')
    >>> file_kind("sweep_config.json"), file_kind("config.resolved.json"), file_kind("notes.json")
    ('config', 'config', 'other')
    >>> file_kind("train_8b.sh"), file_kind("run_eval.sh"), file_kind("run_test.sh"), file_kind("data_config.yaml")
    ('config', 'other', 'other', 'config')
    >>> file_kind("metrics.parquet"), file_kind("train-00000-of-00004.parquet"), file_kind("sft.ipynb")
    ('log', 'other', 'log')
    >>> file_kind("trainer_state.json"), file_kind("trainer_state.json", histories=False)
    ('history', 'config')
    """
    lower = name.lower()
    if lower == NAME:
        return "statements"
    return _kind_by_dialect(lower, dialects, histories=histories) or _kind_by_suffix(lower)


def is_named_step_table(name: str) -> bool:
    """Whether a name is that of a table with a row for each step.

    >>> is_named_step_table("metrics.csv"), is_named_step_table("loss.tsv.gz"), is_named_step_table("spectrum.csv")
    (True, True, False)
    """
    stem, suffix = posixpath.splitext(name.lower())
    stem, suffix = posixpath.splitext(stem) if suffix in _COMPRESSED else (stem, suffix)
    return suffix in TABLE_SUFFIXES and _TABLE_OF_STEPS.fullmatch(stem) is not None


def is_report(name: str) -> bool:
    """Whether a name is that of a document or a workbook.

    >>> is_report("a/README.md"), is_report("results.md.gz"), is_report("results.csv")
    (True, True, False)
    """
    stem, suffix = posixpath.splitext(name.lower())
    return (posixpath.splitext(stem)[1] if suffix in _COMPRESSED else suffix) in _REPORT_SUFFIXES


def _kind_by_dialect(lower: str, dialects: Sequence[Dialect], *, histories: bool) -> str | None:
    for dialect in dialects:
        if histories and any(fnmatchcase(lower, history.pattern) for history in dialect.histories):
            return "history"
        for sidecar in dialect.sidecars:
            if fnmatchcase(lower, sidecar.pattern):
                return sidecar.kind
        if any(fnmatchcase(lower, pattern) for pattern in dialect.log_names):
            return "log"
    return None


def file_kinds(dialects: Sequence[Dialect]) -> Callable[[str], str]:
    """`file_kind` for many names: one search sorts out those that match no dialect, which are most."""
    patterns = [pattern for dialect in dialects for pattern in dialect.log_names]
    patterns += [sidecar.pattern for dialect in dialects for sidecar in dialect.sidecars]
    patterns += [history.pattern for dialect in dialects for history in dialect.histories]
    of_any = re.compile("|".join(map(translate, patterns)) or "(?!)")

    @cache  # a sweep repeats a few names
    def kind_of(name: str) -> str:
        return (
            file_kind(name, dialects)
            if name.lower() == NAME or of_any.match(name.lower())
            else _kind_by_suffix(name.lower())
        )

    return kind_of


def aliases(dialects: Sequence[Dialect]) -> Callable[[str], str]:
    """The pattern of a history whose names differ from run to run (`run-*.wandb`) by the name; "" for other files."""
    patterns = [history.pattern for dialect in dialects for history in dialect.histories if "*" in history.pattern]

    @cache
    def alias_of(name: str) -> str:
        return next((pattern for pattern in patterns if fnmatchcase(name.lower(), pattern)), "")

    return alias_of


def _kind_by_suffix(lower: str) -> str:
    name, suffix = lower, posixpath.splitext(lower)[1]
    while suffix in _COMPRESSED or re.fullmatch(r"\.\d{1,3}", suffix):  # train.log.1, train.log.2.gz
        name = name.removesuffix(suffix)
        suffix = posixpath.splitext(name)[1]
    if suffix in TABLE_SUFFIXES:
        return "log" if _TABLE_OF_STEPS.fullmatch(name.removesuffix(suffix)) else "bench_csv"
    if suffix in _REPORT_SUFFIXES:
        return "bench_csv"
    if is_memory_file(lower):
        return "memory"
    if is_archive(lower):
        return "archive"
    if name in _NEVER_LOGS:
        return "other"
    return "scheduler" if is_named_so(name) else _kind_of_text(name, suffix)


def _kind_of_text(name: str, suffix: str) -> str:
    """Kind of a log, a configuration, or of records of steps or of runs."""
    stem = name.removesuffix(suffix)
    is_of_training = _OF_TRAINING.search(stem) is not None
    is_other = _OF_OTHERS.search(name) is not None
    is_config = suffix in _DOCUMENT_SUFFIXES and _CONFIGURATION.search(name)
    is_launch = _LAUNCH_SCRIPT.fullmatch(name) and not _OF_OTHER_WORK.search(name)
    if is_config or is_launch:
        return "other" if is_other else "config"
    is_records = suffix in (".json", *RECORD_SUFFIXES) and not is_of_training
    if is_records and _OF_RESULTS.search(stem) and not is_other:
        return "bench_csv"
    is_log = suffix in _LOG_SUFFIXES or PBS_STREAM.fullmatch(suffix) is not None
    is_log |= not suffix and _UNNAMED_LOG.fullmatch(name) is not None
    is_log |= EARLIER.fullmatch(name) is not None
    is_log |= suffix in RECORD_SUFFIXES and (is_of_training or not _OF_DATA.search(stem))
    is_log |= suffix in (".json", *NUMBER_TABLES) and is_of_training and not is_other
    return "log" if is_log else "other"


def may_configure(name: str, size: int) -> bool:
    """Whether a file whose name says nothing may be the configuration of the one run that it lies beside.

    >>> may_configure("task.yaml", 900), may_configure("llama8b_tp4.toml", 900), may_configure("tokenizer.json", 900)
    (True, True, False)
    """
    lower = name.lower()
    is_document = posixpath.splitext(lower)[1] in _DOCUMENT_SUFFIXES or _CODE_CONFIGURATION.fullmatch(lower)
    return bool(is_document) and size <= _MOST_CONFIG_BYTES and not _OF_OTHERS.search(lower)


def may_be_data(name: str, dialects: Sequence[Dialect] = DIALECTS) -> bool:
    """Whether nothing in the name of a file of records says that it holds a log, so that its begin has to.

    >>> may_be_data("pod-0.jsonl"), may_be_data("train_log.jsonl"), may_be_data("train_log.json")
    (True, False, True)
    """
    stem, suffix = posixpath.splitext(name.lower())
    is_named = suffix in RECORD_SUFFIXES and _OF_TRAINING.search(stem) is not None
    if is_named or suffix not in (".json", *RECORD_SUFFIXES):
        return False
    return _kind_by_dialect(name.lower(), dialects, histories=False) is None
