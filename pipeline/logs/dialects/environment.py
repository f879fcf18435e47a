"""Settings that launchers and machines print, whatever the framework; dialects add them to their own."""

from __future__ import annotations

import re

import polars as pl

from sweepscope.pipeline.logs.extractors import computed_settings, matched_settings, named_settings
from sweepscope.pipeline.logs.facts import SETTING_FACTS
from sweepscope.pipeline.reference.accelerators import instances
from sweepscope.pipeline.reference.vocabulary import map_words
from sweepscope.pipeline.text import host_list
from sweepscope.pipeline.text.literals import holding

LITERALS = (
    *("CCL version", "--nproc_per_node", "--nproc-per-node", "--nnodes", "NNODES", "GPUS_PER_NODE"),
    *("Tesla ", "NVIDIA A", "NVIDIA H", "NVIDIA B", "NVIDIA G", "NVIDIA L", "NVIDIA RTX", "AMD Instinct MI"),
    *("A100-SXM", "Detected GPU model:", "GeForce ", "Quadro ", "TITAN ", "Radeon "),
    *("Setting accelerator to CPU", ".cpp:"),
    *("xlarge", "highgpu-", "megagpu-", "ultragpu-", "edgegpu-", "g2-standard-", "Standard_N", "BM.GPU", "g4dn.metal"),
    *("JAX process: ", "local devices: [", "store-based barrier", "Stage 3 initialize"),
    *("init nccl context nranks: ", "TresPerNode=gres"),
    *("SLURM_JOB", "SLURM_NNODES", "SLURM_NODELIST", "SLURM_GPUS_ON_NODE", "PBS_JOBID"),
)

# Slurm's variables as scripts echo and programs dump them: `SLURM_NNODES=4`, `SLURM_JOB_ID: 17`, `'SLURM_JOBID': '17'`.
_SCHEDULED = (
    {"SLURM_JOB_ID": "job_id", "SLURM_JOBID": "job_id", "PBS_JOBID": "job_id"}
    | {"SLURM_NNODES": "num_nodes", "SLURM_JOB_NUM_NODES": "num_nodes", "SLURM_GPUS_ON_NODE": "gpus_per_node"}
    | {"SLURM_JOB_NODELIST": "hosts", "SLURM_NODELIST": "hosts"}
)
_SCHEDULED_VALUE = r"\b((?:SLURM|PBS)_[A-Z_]+)['\"]?\s*[=:]\s*['\"]?(\w[\w.,\[\]-]*)"

_LAUNCH = {
    "nproc_per_node": "gpus_per_node",
    "nproc-per-node": "gpus_per_node",
    "nnodes": "num_nodes",
    "GPUS_PER_NODE": "gpus_per_node",
    "NNODES": "num_nodes",
}
# torchrun's options, and the variables that launch scripts export or print (Primus: `NNODES: 1`, `NNODES=1`).
_LAUNCH_OPTION = r"--(nproc[-_]per[-_]node|nnodes)[= ](\d+)(?:\s|$)"
# torchrun without --nnodes: one node (torch/distributed/run.py). A command that goes on in the next line may name more.
_ALONE = r"\b(?:torchrun|torch\.distributed\.(?:run|launch))\b.*--nproc[-_]per[-_]node[= ]\d+(?:\s.*[^\\\s])?\s*$"
# A configuration that is printed may show in a comment how its author launched it (nanoGPT config/train_gpt2.py).
_COMMENT = r"^\s*#(?:\s|$)"
_LAUNCH_VARIABLE = r"\b(NNODES|GPUS_PER_NODE)(?:=|:\s*)(\d+)\s*$"

RANK = "arg:torch_rank"
CPU_PROCESS = "arg:cpu_process"
"""Names of a global rank, and of DeepSpeed's warning that each process on a CPU prints (real_accelerator.py)."""
_LAUNCHED = "arg:torch_launcher"
"""The host or the task of srun whose launcher started a rank, by its label in front of the rank's."""

_WITHOUT_ACCELERATOR = r"\[real_accelerator\.py:\d+:get_accelerator\] Setting accelerator to "

# Names as drivers report them and torch.cuda.get_device_name returns them, whatever is written around them. Shorter
# ones ("an H100") are left to lines that are about the machine: prose compares cards, too.
_DEVICE = (
    r"\b(NVIDIA (?:[AH]\d00[ -](?:SXM|PCI|NVL|\d+GB)[\w-]*(?: HBM\d\w*| PCIe)?|GH200 \d+GB|H200(?: NVL)?|G?B[23]00"
    r"|H20|L40S?|L4|A40|A10G?|(?:GeForce )?RTX (?:A?\d000|\d{2}[5-9]0)(?: Ti| SUPER| Ada Generation)*)"
    r"|Tesla [TPVKM]\d+[\w-]*|AMD Instinct MI\d+\w?"
    # Older drivers leave the maker out.
    r"|GeForce [GR]TX \d{3,4}(?: Ti| SUPER)*|Quadro (?:RTX \d{4}|GV100|P\d{4})|TITAN (?:RTX|Xp|V)"
    r"|(?:AMD )?Radeon (?:RX \d{4}(?: XTX| XT| GRE)?|PRO W\d{4}|VII))\b"
)

# Instance types of clouds, in what SageMaker's toolkit, Kubernetes' node labels or a launcher's task print.
_INSTANCE = rf"(?:^|[^\w.-])(?:ml\.)?({'|'.join(map(re.escape, instances()))})(?:[^\w.-]|$)"

_LINE = (
    # ncclGetVersion, printed by rank 0 of each communicator: src/init.cc `NCCL version 2.27.3+cuda12.9`; AMD: RCCL.
    ("nccl_version", r"\bR?N?CCL version (\d[\w.+-]*)"),
    # A row of nvidia-smi's table; long names are cut with dots.
    ("accelerator", r"^\|\s+\d+\s+((?:NVIDIA |Tesla |A100|H100)[\w -]*\w)(?:\.\.\.)?\s+(?:On|Off)\s*\|"),
    ("accelerator", r"Detected GPU model: (\S+)"),  # Primus runner/helpers
    ("accelerator", _DEVICE),
    ("accelerator", _INSTANCE),
    ("accelerator", rf"{_WITHOUT_ACCELERATOR}(CPU)\b"),
    # What programs on JAX print of their processes, one a host (jax.process_count).
    ("num_nodes", r"\bJAX process: \d+ ?/ ?(\d+)\b"),
    # torch before 2.1: its "nodes" are the processes of the default group (distributed_c10d.py _store_based_barrier).
    ("num_gpus", r"\bCompleted store-based barrier for key:store_based_barrier_key:1 with (\d+) nodes"),
    # Paddle's nccl_context.cc; the first ring is of all processes.
    ("num_gpus", r"\binit nccl context nranks: (\d+) local rank: \d+ gpu id: \d+ ring id: 0\b"),
    # Slurm's `scontrol show job`, in its own output.
    ("accelerator", r"^\s*TresPerNode=gres[/:]gpu:([A-Za-z]\w*):\d+\s*$"),
    ("gpus_per_node", r"^\s*TresPerNode=gres[/:]gpu:(?:[A-Za-z]\w*:)?(\d+)\s*$"),
    # DeepSpeed's report of memory while it sets ZeRO up (runtime/zero/stage3.py).
    ("zero_stage", r"^Stage (3) initialize (?:beginning|\[begin\])"),
    (CPU_PROCESS, rf"{_WITHOUT_ACCELERATOR}(CPU)\b"),
)
# Warnings only: an error of the watchdog comes from every rank but the one that all wait for.
_TORCH_WARNING = r"^\[W\d{3,4} [^\]]* \w+\.cpp:\d+\]"


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """Library version, accelerator and launch size, as SETTING_FACTS."""
    near = lines.filter(holding(LITERALS))
    if near.is_empty():
        return pl.DataFrame(schema=SETTING_FACTS)
    commands = near.filter(~pl.col("text").str.contains(_COMMENT))
    launched = [
        named_settings(commands, pattern, _LAUNCH, setting_source="command_line")
        for pattern in (_LAUNCH_OPTION, _LAUNCH_VARIABLE)
    ]
    found = [matched_settings(near, _LINE), *launched, _alone(commands), _scheduled(near), _listed_devices(near)]
    return pl.concat(found)


def ranks(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the global ranks in front of torch's warnings (c10/util/Logging.cpp), each once a file."""
    mine = lines.filter(pl.col("rank").is_not_null() & pl.col("text").str.contains(_TORCH_WARNING))
    return computed_settings(mine.unique(["source", "rank"], keep="first", maintain_order=True), {RANK: pl.col("rank")})


def launchers(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the launcher of each of `ranks`, where lines are labelled with it (pdsh, `srun --label`)."""
    mine = lines.filter(pl.col("rank").is_not_null() & pl.col("text").str.contains(_TORCH_WARNING))
    first = mine.unique(["source", "rank"], keep="first", maintain_order=True)
    return computed_settings(first, {_LAUNCHED: pl.col("prefix").str.extract(r"^ *(\S+): *\[rank\d+\]")})


_OF_SIZE = ("num_gpus", "num_nodes", "gpus_per_node", "dp", "dp_shard")


def with_counted_ranks(settings: pl.DataFrame) -> pl.DataFrame:
    """`settings` of whole files with the number of processes in place of `ranks`, and of nodes in place of `launchers`.

    It counts where none is missing from 0 on, and nothing else in the file states a size: the log of one node of
    several holds a part of them. Launchers of several ranks each, as many of each, are nodes.
    """
    is_rank, is_launched = pl.col("name") == RANK, pl.col("name") == _LAUNCHED
    if not settings.select(is_rank.any()).item():
        return settings
    others, rank = settings.filter(~is_rank & ~is_launched), pl.col("value").cast(pl.Int64, strict=False)
    known = others.filter(pl.col("name").is_in(_OF_SIZE))
    unknown = settings.join(known, on="source", how="anti", maintain_order="left")
    first = unknown.filter(is_rank).unique(["source", "value"], keep="first", maintain_order=True)
    launched = unknown.filter(is_launched).select("source", "line_no", launcher="value")
    ranks_of = first.join(launched.unique(["source", "line_no"]), on=["source", "line_no"], how="left")
    sizes = pl.col("launcher").value_counts().struct.field("count")
    counted = (
        ranks_of.group_by("source", maintain_order=True)
        .agg(
            pl.col("line_no").max(),
            most=rank.max(),
            n=rank.n_unique(),
            is_labelled=pl.col("launcher").is_not_null().all(),
            nodes=pl.col("launcher").n_unique(),
            least=sizes.min(),
            largest=sizes.max(),
        )
        .filter((pl.col("most") > 0) & (pl.col("n") == pl.col("most") + 1))
    )
    are_nodes = pl.col("is_labelled") & (pl.col("least") == pl.col("largest")) & (pl.col("least") > 1)
    values = {"num_gpus": pl.col("n"), "num_nodes": pl.when(are_nodes).then("nodes")}
    return pl.concat([others, computed_settings(counted, values, setting_source="derived")])


def _listed_devices(lines: pl.DataFrame) -> pl.DataFrame:
    """Cards of a process, of which JAX prints all (`local devices: [CudaDevice(id=0), CudaDevice(id=1)]`)."""
    listed = pl.col("text").str.extract(r"\blocal devices: \[(.*)\]\s*$")
    cards = listed.str.count_matches(r"(?:Cuda|Rocm|Gpu|Tpu|StreamExecutorGpu)Device\(")
    return computed_settings(lines, {"gpus_per_node": pl.when(cards > 0).then(cards)}, setting_source="log_line")


def _alone(lines: pl.DataFrame) -> pl.DataFrame:
    text = pl.col("text")
    is_alone = text.str.contains(_ALONE) & ~text.str.contains("nnodes", literal=True)
    return computed_settings(lines, {"num_nodes": pl.when(is_alone).then(pl.lit("1"))}, setting_source="command_line")


def _scheduled(lines: pl.DataFrame) -> pl.DataFrame:
    """The scheduler's variables; a value of another kind (a name in place of a number) is left out."""
    found = named_settings(lines, _SCHEDULED_VALUE, _SCHEDULED, setting_source="log_line")
    hosts = map_words(found["value"], _host_names, pl.String)
    value = (
        pl.when(pl.col("name") == "job_id")
        .then(pl.col("value").str.extract(r"^(\d+(?:_\d+)?)(?:\.|$)"))
        .when(pl.col("name") == "hosts")
        .then(hosts)
        .otherwise(pl.col("value").str.extract(r"^([1-9]\d*)$"))
    )
    return found.with_columns(value=value).drop_nulls("value")


def _host_names(text: str) -> str | None:
    return ", ".join(names) if (names := host_list.hosts(text)) else None
