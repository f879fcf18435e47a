"""Whose memory filled the GPU: torch's out-of-memory texts of every age, busy devices, and nvidia-smi's table."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.logs.diagnostics.gpu_sharing import foreign_memory
from tests.pipeline.ingest_in_memory import tables_of
from tests.pipeline.logs.steps_table import said

HEAD = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {} GiB. GPU 2 has a total capacity of {} GiB of which "
TAIL = (
    " Of the allocated memory {} GiB is allocated by PyTorch, and 116.33 MiB is reserved by PyTorch but unallocated. "
    "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
)
ZOMBIE = (
    HEAD.format("2.00", "79.15")
    + "59.69 MiB is free. Process 502587 has 1.50 GiB memory in use. Process 745081 has 60.00 GiB memory in use. "
    "Including non-PyTorch memory, this process has 17.55 GiB memory in use." + TAIL.format("16.90")
)
OWN = (
    HEAD.format("2.90", "178.35")
    + "1.27 GiB is free. Including non-PyTorch memory, this process has 177.08 GiB memory in use."
    + TAIL.format("172.96")
)
CROWDED = (
    HEAD.format("2.90", "178.35")
    + "1.27 GiB is free. Process 112748 has 1.73 GiB memory in use. Including non-PyTorch memory, this process has "
    "175.35 GiB memory in use." + TAIL.format("172.96")
)
TOO_LARGE = (
    HEAD.format("40.00", "79.15")
    + "1.00 GiB is free. Process 745081 has 20.00 GiB memory in use. Including non-PyTorch memory, this process has "
    "58.15 GiB memory in use." + TAIL.format("57.00")
)
IN_CONTAINER = (
    HEAD.format("2.00", "79.15") + "0.15 GiB is free. Process 4711 has 79.00 GiB memory in use." + TAIL.format("77.80")
)
IN_CONTAINER_BESIDE = (
    HEAD.format("2.00", "79.15")
    + "0.15 GiB is free. Process 4711 has 39.00 GiB memory in use. Process 4712 has 40.00 GiB memory in use."
    + TAIL.format("38.80")
)
MISSPELT = ZOMBIE.replace("capacity", "capacty")  # torch 2.1
TORCH_1 = (
    "RuntimeError: CUDA out of memory. Tried to allocate 3.91 GiB (GPU 0; 79.33 GiB total capacity; 27.16 GiB already "
    "allocated; 251.62 MiB free; 31.59 GiB reserved in total by PyTorch)"
)
TORCH_1_OWN = (
    "RuntimeError: CUDA out of memory. Tried to allocate 3.91 GiB (GPU 0; 79.33 GiB total capacity; 73.16 GiB already "
    "allocated; 251.62 MiB free; 76.59 GiB reserved in total by PyTorch)"
)
OVERFLOWED = (
    HEAD.format("2.00", "15.46") + "0 bytes is free. Including non-PyTorch memory, this process has "
    "17179869184.00 GiB memory in use." + TAIL.format("14.00")
)  # WSL
BARE = "CUDA error: out of memory"

CASES = {
    "left over by another run": (
        ZOMBIE,
        "oom_by_others",
        "other processes held 61.5 of the card's 79.15 GiB (process 745081: 60.0 GiB, and 1 more), this process 17.55 GiB; without them the requested 2.0 GiB would have fitted",
    ),
    "torch 2.1": (
        MISSPELT,
        "oom_by_others",
        "other processes held 61.5 of the card's 79.15 GiB (process 745081: 60.0 GiB, and 1 more), this process 17.55 GiB; without them the requested 2.0 GiB would have fitted",
    ),
    "a little beside a run that fills the card": (
        CROWDED,
        "gpu_shared",
        "other processes held 1.73 of the card's 178.35 GiB (process 112748: 1.73 GiB), this process 175.35 GiB; without them the requested 2.9 GiB would have fitted",
    ),
    "would not have fitted either": (
        TOO_LARGE,
        "gpu_shared",
        "other processes held 20.0 of the card's 79.15 GiB (process 745081: 20.0 GiB), this process 58.15 GiB; the request would not have fitted without them either",
    ),
    "a container's own process is listed": (
        IN_CONTAINER_BESIDE,
        "oom_by_others",
        "other processes held 39.0 of the card's 79.15 GiB (process 4711: 39.0 GiB), this process 40.0 GiB; without them the requested 2.0 GiB would have fitted",
    ),
    "torch 1": (
        TORCH_1,
        "oom_by_others",
        "other processes held 47.49 of the card's 79.33 GiB (not listed: memory that is neither free nor this process's), this process 31.59 GiB; without them the requested 3.91 GiB would have fitted",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_foreign_memory(case: str) -> None:
    line, kind, text = CASES[case]
    assert foreign_memory(said("oom", line)).select("kind", "text").rows() == [(kind, text)]


@pytest.mark.parametrize("line", [OWN, IN_CONTAINER, TORCH_1_OWN, OVERFLOWED, BARE, "OutOfMemoryError: "])
def test_the_runs_own_memory(line: str) -> None:
    assert foreign_memory(said("oom", line)).is_empty()


def test_no_lines() -> None:
    assert foreign_memory(said("oom")).is_empty()


def test_of_many_ranks_the_worst_stands_for_all() -> None:
    found = foreign_memory(said("oom", CROWDED, ZOMBIE, TOO_LARGE, OWN))
    assert found.select("line_no", "kind").rows() == [(2, "oom_by_others")]
    assert found["text"][0].endswith("; reported in 3 lines")


def test_the_run_is_out_of_memory_and_the_event_says_by_whom() -> None:
    tables = tables_of({"a.log": f"[rank2]: Traceback (most recent call last):\n[rank2]: {ZOMBIE}\n"})
    assert tables["runs"].select("status", "status_confidence").rows() == [("oom", "high")]
    assert tables["events"].filter(kind="oom_by_others").select("source_path", "line_no", "rank").rows() == [
        ("a.log", 2, 2)
    ]


STEP = (
    "[rank0]:[titan] 2026-05-19 19:36:01,730 - root - INFO - step:  1  loss:  7.01706  grad_norm: 31.3750  memory: "
    "169.20GiB(94.87%)  tps: 9,646  tflops: 812.70  mfu: 36.12%\n"
)


@pytest.mark.parametrize(
    "words",
    [
        "CUDA error: all CUDA-capable devices are busy or unavailable",
        "CUDA error: CUDA-capable device(s) is/are busy or unavailable",
    ],
)
def test_a_device_that_is_taken_is_an_event_of_the_crash(words: str) -> None:
    line = f"[rank{{0}}]: RuntimeError: {words}\n"
    tables = tables_of({"a.log": STEP + line.format(3) + line.format(4)})
    assert tables["runs"]["status"].to_list() == ["crash"]
    assert tables["events"].filter(kind="gpu_busy").select("line_no", "rank").rows() == [(2, 3)]


SMI = """\
|=======================================================================================|
|    0   N/A  N/A    745081      C   /usr/bin/python3                          61440MiB |
|    1   N/A  N/A    745082      C   /usr/bin/python3                          20480MiB |
|    0   N/A  N/A      2210      G   /usr/lib/xorg/Xorg                            4MiB |
+---------------------------------------------------------------------------------------+
"""
SMI_OLD = "|    0     13245      C   python                                     30123MiB |\n"
LAUNCH = "[rank0]:[titan] 2026-05-19 19:35:01,730 - root - INFO - Starting job: Llama 3 training\n"


def test_what_held_the_gpu_before_the_trainer_began() -> None:
    found = tables_of({"a.log": SMI + LAUNCH + STEP})["events"].filter(kind="gpu_shared")
    assert found.select("line_no", "text").rows() == [
        (
            2,
            "before the trainer began, process 745081 (/usr/bin/python3) held 60.0 GiB of GPU 0, "
            "and 1 more such processes",
        )
    ]
    old = tables_of({"a.log": SMI_OLD + LAUNCH + STEP})["events"].filter(kind="gpu_shared")
    assert old["text"].to_list() == ["before the trainer began, process 13245 (python) held 29.4 GiB of GPU 0"]


def test_what_nvidia_smi_shows_later_is_the_runs_own() -> None:
    assert tables_of({"a.log": LAUNCH + SMI + STEP})["events"].filter(kind="gpu_shared").is_empty()


def test_a_table_of_processes_alone_is_no_run() -> None:
    tables = tables_of({"smi.txt": SMI})
    assert tables["runs"].is_empty()
    assert tables["events"].is_empty()


def test_processes_that_no_signal_ended() -> None:
    line = "slurmstepd: error: *** JOB 17 STEPD TERMINATED ON n12 AT 2025-02-03T06:30:20 DUE TO JOB NOT ENDING WITH SIGNALS ***\n"
    found = tables_of({"a.log": STEP + line})["events"].filter(kind="not_ending")
    assert found.select("line_no", "text").rows() == [(2, line.strip())]
