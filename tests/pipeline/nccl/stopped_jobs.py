"""A job of which one rank stops, and the dumps that its ranks then write, in any format of PyTorch's flight recorder.

All ranks go through one list of collectives and sends, each through those that concern it, so that nothing hangs but
for the rank that stops. Formats are those of torch/csrc/distributed/c10d (TraceUtils.h, FlightRecorder.hpp).
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

OPS = ("all_reduce", "_allgather_base", "_reduce_scatter_base", "broadcast")
VERSIONS = ((1, 1), (1, 4), (2, 0), (2, 2), (2, 4), (2, 10))
Call = tuple[int, str, tuple[int, int] | None]  # group, operation, sender and receiver


@dataclass
class Entered:
    """A call that a rank has entered: its place in the job's list and its numbers in the group."""

    place: int
    call: Call
    seq: int
    p2p_seq: int


@dataclass
class Stopped:
    """`groups`: ranks of each; the first is the default group. `is_blocking`: ranks wait for each call's end."""

    groups: list[tuple[int, ...]]
    program: list[Call]
    stopped: int
    after: int
    is_blocking: bool
    entered: dict[int, list[Entered]] = field(default_factory=dict)

    def ranks_of(self, call: Call) -> tuple[int, ...]:
        return call[2] or self.groups[call[0]]

    def has_ended(self, place: int) -> bool:
        """Whether all ranks of a call have entered it."""
        there = {rank for rank, calls in self.entered.items() if any(one.place == place for one in calls)}
        return there == set(self.ranks_of(self.program[place]))

    def run(self, rng: random.Random) -> None:
        """Until nobody gets further."""
        ranks = list(self.groups[0])
        todo = {
            rank: [
                place
                for place, call in enumerate(self.program)
                if rank in self.ranks_of(call) and not (rank == self.stopped and place >= self.after)
            ]
            for rank in ranks
        }
        self.entered = {rank: [] for rank in ranks}
        numbers: dict[int, Counter[tuple[int, bool]]] = {rank: Counter() for rank in ranks}
        moved = True
        while moved:
            moved = False
            for rank in rng.sample(ranks, len(ranks)):
                mine = self.entered[rank]
                if len(mine) == len(todo[rank]) or (self.is_blocking and mine and not self.has_ended(mine[-1].place)):
                    continue
                place = todo[rank][len(mine)]
                group, _, ends = self.program[place]
                numbers[rank][group, ends is not None] += 1
                count = numbers[rank]
                mine.append(Entered(place, self.program[place], count[group, False], count[group, True]))
                moved = True


def stopped_job(rng: random.Random) -> Stopped:
    size = rng.randrange(2, 7)
    groups = [tuple(range(size))]
    groups += [tuple(sorted(rng.sample(range(size), rng.randrange(2, size + 1)))) for _ in range(rng.randrange(4))]
    sends = rng.choice((0.0, 0.4))
    program: list[Call] = []
    for _ in range(rng.randrange(1, 20)):
        group = rng.randrange(len(groups))
        sender, receiver = rng.sample(groups[group], 2)
        program.append((group, rng.choice(OPS), None) if rng.random() >= sends else (group, "", (sender, receiver)))
    job = Stopped(groups, program, rng.randrange(size), rng.randrange(len(program) + 1), rng.random() < 0.6)
    job.run(rng)
    return job


def dumps(job: Stopped, version: tuple[int, int], *, has_timing: bool) -> dict[int, dict[str, Any]]:
    """What each rank writes."""
    found = {}
    for rank, calls in job.entered.items():
        mine = [number for number, ranks in enumerate(job.groups) if rank in ranks]
        used = [group for group in mine if any(one.call[0] == group for one in calls)]
        document: dict[str, Any] = {"version": f"{version[0]}.{version[1]}"}
        if version >= (2, 0):
            document["pg_config"] = {
                str(g): {"name": str(g), "desc": "", "ranks": str(list(job.groups[g]))} for g in used
            }
        elif version > (1, 1):
            document["pg_config"] = {mine.index(g): list(job.groups[g]) for g in used}
        counts: Counter[int] = Counter()
        document["entries"] = []
        for number, one in enumerate(calls):
            group, _, ends = one.call
            counts[group] += 1
            entry = _entry(job, rank, one, has_timing=has_timing)
            if version >= (2, 0):
                desc = "undefined" if group else "default_pg"
                entry |= {"collective_seq_id": one.seq, "p2p_seq_id": one.p2p_seq, "process_group": (str(group), desc)}
                entry |= {"is_p2p": ends is not None, "input_dtypes": ["Float"], "output_dtypes": ["Float"]}
            else:
                entry["seq_id"] = counts[group]
            if version > (1, 1):
                entry["record_id"] = number
            document["entries"].append(entry | {"pg_id": mine.index(group)})
        found[rank] = document
    return found


def _entry(job: Stopped, rank: int, one: Entered, *, has_timing: bool) -> dict[str, Any]:
    group, op, ends = one.call
    if ends:
        sender, receiver = (job.groups[group].index(end) for end in ends)
        op = f"send {sender}->{receiver}" if rank == ends[0] else f"recv {receiver}<-{sender}"
    is_done, when = job.has_ended(one.place), 10**18 + one.place
    return {
        "profiling_name": f"nccl:{op}",
        "time_created_ns": when,
        "input_sizes": [[8]],
        "output_sizes": [[8]],
        "state": "completed" if is_done else "started" if has_timing else "scheduled",
        "retired": is_done,
        "frames": [],
        "time_discovered_started_ns": when if has_timing else None,
        "time_discovered_completed_ns": when if is_done else None,
    }
