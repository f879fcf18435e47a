"""What the names of folders and logs tell: parts of the run above them, or of one of its ranks. Opens no file."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import pairwise

# transformers' checkpoint-500, Lightning's version_0, torchelastic's attempt_0, DeepSpeed's global_step100.
_CONTAINER = re.compile(
    r"out|outputs?|train_output|logs?|logging|train_logs?|csv|csv_logs|tb|tb_logs|tf_logs|tensorboard|tensorboard_logs"
    r"|lightning_logs|results?|metrics|checkpoints?|ckpts?|saves?|artifacts|model|final_model|wandb|files"
    r"|console|stdout|stderr|slurm|slurm_logs|slurm_out|user_logs"
)
"""Folders that trainers, their users and launchers make inside a run's own."""
_NUMBERED = re.compile(r"(?:checkpoint|ckpt|version|attempt|restart|epoch|step|global_step|iter)[-_]?\d+")
# wandb sdk/wandb_settings.py: offline-run-20260101_120000-1a2b3c4d.
_WANDB_RUN = re.compile(r"(?:offline-)?run-\d{8}_\d{6}-\w+")
# torchrun --log-dir: the rendezvous id (none, or the job's) and what tempfile adds (elastic DefaultLogsSpecs).
_ELASTIC_RUN = re.compile(r"(?:none|\d{3,})_[a-z0-9_]{8}")
_RANK = re.compile(
    r"(?P<of>(?:.*[-_.])?(?:rank|node|worker(?:log)?|host|proc|process))[-_.]?(?P<rank>\d{1,6})(?P<rest>(?:[-_.].*)?)"
)
# Names of machines, which are numbered from anywhere: `host-0017`, `gpu017`, `nid001234`, `ip-10-0-0-12`, `10.0.0.12`.
_MACHINE = re.compile(
    r"(?P<of>(?:.*[-_.])?(?:(?:node|host|worker|gpu|nid|cn|compute)[-_.]?(?=0)|(?:\d{1,3}[.-]){3}))"
    r"(?P<rank>\d{1,6})(?P<rest>(?:[-_.].*)?)"
)
# Pods of Kubeflow's PyTorchJob and MPIJob (training-operator pkg/common/util, mpi-operator): the job's name and a role.
_LEADING_ZERO = re.compile(r"(?<!\d)0\d")
_POD = re.compile(r"(?P<job>.+)-(?:(?P<first>master|launcher|chief)-(?:0|[a-z0-9]{5})|worker-\d{1,5})")
_ATTEMPT = re.compile(r"attempt_\d+")
# Slurm's slurm-%j.out, names with a job id of PBS and SGE, and what users call the output of a shell or launcher.
_CONSOLE = re.compile(
    r"(?:(?:slurm|sbatch|pbs|lsf|job)[-_.]?\d{3,}.*|.*\.\d{3,}|nohup|console|std|launch(?:er)?|torchrun|srun)(?:\.txt)?"
)
_RECORDS = re.compile(
    r"(?:train(?:ing)?[-_])?(?:metrics?|history|stats|statistics|scalars|progress|telemetry|loss(?:es)?|steps|logs?)"
)
"""Values of each step, which a trainer writes beside its log."""
_STREAMS = re.compile(r"(?:^|(?<=[-_.]))std(?:out|err)(?=$|[-_.])")


_PARTS = (_CONTAINER, _NUMBERED, _WANDB_RUN, _ELASTIC_RUN)


def is_part_of_run(path: str) -> bool:
    """Whether a folder below a run's, by its relative path, is none of another run.

    >>> is_part_of_run("lightning_logs/version_0"), is_part_of_run(""), is_part_of_run("out/tp4")
    (True, True, False)
    >>> is_part_of_run("logs/none_8kx2_1ab/attempt_0")
    True
    """
    names = path.lower().split("/")
    return not path or all(any(form.fullmatch(name) for form in _PARTS) for name in names)


def is_attempt(name: str) -> bool:
    """Whether a folder is one of torchelastic's attempts (elastic/multiprocessing/api.py DefaultLogsSpecs)."""
    return _ATTEMPT.fullmatch(name) is not None


def ranks(names: Collection[str], *, of_attempt: bool = False) -> frozenset[str]:
    """Those of the folders in one folder that are of the ranks, or of the nodes, of one run.

    Ranks and nodes count from 0; machines from anywhere, one by one, with leading zeros or by addresses.
    Other numbers are settings: `node2` and `node4`, LoRA's `rank8` and `rank16`.

    Args:
        names: of the folders.
        of_attempt: they lie in a folder of torchelastic's, which names those of ranks by their number alone.

    >>> sorted(ranks(["rank_0", "rank_1", "out"])), ranks(["node1", "node2"]), sorted(ranks("01", of_attempt=True))
    (['rank_0', 'rank_1'], frozenset(), ['0', '1'])
    >>> sorted(ranks(["gpu017", "gpu018"])), ranks(["node08", "node16"])
    (['gpu017', 'gpu018'], frozenset())
    >>> sorted(ranks(["10.0.0.9", "10.0.0.10"]))
    ['10.0.0.10', '10.0.0.9']
    """
    return frozenset(_runs_of_ranks(names, of_attempt=of_attempt))


def _runs_of_ranks(names: Collection[str], *, of_attempt: bool = False) -> dict[str, str]:
    """What the names of one run's ranks have in common, by each of these names."""
    groups: dict[str, dict[str, int]] = {}
    machines: dict[str, dict[str, int]] = {}
    for name in names:
        if of_attempt and name.isdecimal():
            groups.setdefault("", {})[name] = int(name)
        elif hit := _RANK.fullmatch(name.lower()):
            groups.setdefault(f"{hit['of']}{hit['rest']}", {})[name] = int(hit["rank"])
        if hit := _MACHINE.fullmatch(name.lower()):
            machines.setdefault(f"{hit['of'].rstrip('-_.')}{hit['rest']}", {})[name] = int(hit["rank"])
    of_ranks = {run: group for run, group in groups.items() if _count_from_zero(group.values())}
    of_machines = {run: group for run, group in machines.items() if _are_machines(group)}
    return {name: run for run, group in (of_machines | of_ranks).items() for name in group}


def log_roles(stems: Collection[str]) -> dict[str, tuple[str, str]]:
    """Run and launch of the logs of one folder, by their names without suffix.

    Ranks and both streams have the name of one run. Beside one other log, what a scheduler or a shell keeps of the
    console is of that log's run, and may tell of one launch of it.

    >>> log_roles(["rank0", "rank1"]), log_roles(["node2", "node4"])
    ({'rank0': ('rank', ''), 'rank1': ('rank', '')}, {'node2': ('node2', ''), 'node4': ('node4', '')})
    >>> log_roles(["host-0017", "host-0018"])
    {'host-0017': ('host', ''), 'host-0018': ('host', '')}
    >>> log_roles(["train", "metrics"])
    {'train': ('train', ''), 'metrics': ('train', '')}
    >>> log_roles(["train", "slurm-4711"]), log_roles(["tp2", "tp4", "nohup"])["nohup"]
    ({'train': ('train', ''), 'slurm-4711': ('train', 'slurm-4711')}, ('nohup', ''))
    >>> log_roles(["tp2-master-0", "tp2-worker-0"])
    {'tp2-master-0': ('tp2', ''), 'tp2-worker-0': ('tp2', '')}
    """
    streams = {stem: _STREAMS.sub("std", stem) for stem in stems}
    of_ranks = _runs_of_ranks(set(streams.values()))
    runs = {
        stem: of_ranks[stream] if stream in of_ranks and len(of_ranks) > 1 else stream
        for stem, stream in streams.items()
    } | _jobs_of_pods(stems)
    own = {run for run in runs.values() if not _CONSOLE.fullmatch(run.lower())}
    # Records of a trainer beside its log, or beside the console alone.
    own = {run for run in own if not _RECORDS.fullmatch(run.lower())} or own
    if len(own) != 1:
        return {stem: (run, "") for stem, run in runs.items()}
    (name,) = own
    # Records are of the log's own launch; a console's output may be of one of several.
    return {stem: (name, "" if run == name or _RECORDS.fullmatch(run.lower()) else run) for stem, run in runs.items()}


def _jobs_of_pods(stems: Collection[str]) -> dict[str, str]:
    """The job of each log of a pod; workers alone may be anything's."""
    pods = {stem: hit for stem in stems if (hit := _POD.fullmatch(stem))}
    with_first = {hit["job"] for hit in pods.values() if hit["first"]}
    return {stem: hit["job"] for stem, hit in pods.items() if hit["job"] in with_first}


def _are_machines(numbers: Mapping[str, int]) -> bool:
    """Whether names are those of machines side by side: numbered one by one, with leading zeros if with any."""
    ordered = sorted(numbers.values())
    is_padded = len({len(name) for name in numbers}) == 1 or not any(_LEADING_ZERO.search(name) for name in numbers)
    return is_padded and 1 < len(ordered) == ordered[-1] - ordered[0] + 1


def _count_from_zero(numbers: Collection[int]) -> bool:
    """Whether numbers are 0, k, 2k, ...: of all ranks, or of the first of each node."""
    ordered = sorted(set(numbers))
    return ordered[0] == 0 and len({after - before for before, after in pairwise(ordered)}) < 2
