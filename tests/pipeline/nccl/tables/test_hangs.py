"""PyTorch's watchdog in every wording: what timed out, who waited, who did not come, and when nobody can say."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.nccl.facts import Facts
from sweepscope.pipeline.nccl.tables import hangs
from sweepscope.pipeline.nccl.tables.hang_lines import hang_lines
from tests.pipeline.nccl.reading import facts_of, row_of, tables_of

WORK = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={nin}, NumelOut={nout}, Timeout(ms)=600000) ran for {ran} milliseconds before timing out."
STATUS = "[PG ID {pg} PG GUID {pg}(default_pg) Rank {rank}]  failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: {enqueued}, last completed work: {done}"


def timeout(
    rank: int,
    seq: int = 7,
    *,
    op: str = "ALLREDUCE",
    nin: int = 8,
    nout: int = 8,
    ran: int = 600010,
    stamp: str = "E606 09:09:08.164985344",
    enqueued: int | None = None,
) -> str:
    head = f"[rank{rank}]:[{stamp} ProcessGroupNCCL.cpp:757] "
    lines = [f"{head}[Rank {rank}] " + WORK.format(seq=seq, op=op, nin=nin, nout=nout, ran=ran)]
    lines.append(
        head + STATUS.format(pg=0, rank=rank, seq=seq, enqueued=seq if enqueued is None else enqueued, done=seq - 1)
    )
    # The same text again, as the exception ends the process.
    lines.append(
        "  what():  "
        + f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated with exception: [Rank {rank}] "
        + WORK.format(seq=seq, op=op, nin=nin, nout=nout, ran=ran)
    )
    return "\n".join(lines) + "\n"


def hang(text: str, **known: int) -> dict[str, object]:
    return row_of(tables_of(text, **known)["nccl_hangs"])


def test_few_silent_ranks_are_suspects() -> None:
    row = hang("".join(timeout(rank) for rank in (0, 1, 2, 4, 5, 6, 7)), num_ranks=8)
    assert (row["op"], row["seq"], row["process_group"], row["numel_in"], row["timeout_ms"]) == (
        "ALLREDUCE",
        7,
        "0(default_pg)",
        8,
        600000,
    )
    assert (row["ranks_reporting"], row["ranks_silent"], row["num_ranks"]) == ("0,1,2,4,5,6,7", "3", 8)
    assert (row["suspect"], row["suspect_reason"]) == ("3", "silent while 7 of 8 timed out on ALLREDUCE seq 7")
    assert (row["ran_for_ms"], row["is_first"], row["evidence_source"]) == (600010, True, "watchdog")


def test_many_silent_ranks_are_not() -> None:
    row = hang("".join(timeout(rank) for rank in (0, 2, 3)), num_ranks=8)
    assert row["ranks_silent"] == "1,4,5,6,7"
    assert "suspect" not in row
    assert row["suspect_reason"] == "not determinable: 5 of 8 ranks are silent while 3 timed out on ALLREDUCE seq 7"


def test_when_all_came_the_network_is_suspect() -> None:
    row = hang("".join(timeout(rank, 1, op="ALLGATHER", nin=1, nout=4) for rank in range(4)))
    assert (row["num_ranks"], row.get("ranks_silent"), row.get("suspect")) == (4, None, None)
    assert "none is missing" in str(row["suspect_reason"])


def test_a_rank_that_failed_before_is_the_suspect() -> None:
    died = "[rank3]: Traceback (most recent call last):\n[rank3]: RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed.\n"
    row = hang(died + timeout(0) + timeout(1), num_ranks=4)
    assert row["suspect"] == "3"
    assert (
        row["suspect_reason"]
        == "rank 3 failed before the others timed out on ALLREDUCE seq 7: RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed."
    )


def test_what_fails_because_of_the_hang_is_no_cause() -> None:
    after = "[rank3]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp\n"
    row = hang("".join(timeout(rank) for rank in (0, 1, 2)) + after + "[rank3]: RuntimeError: late\n", num_ranks=8)
    assert "suspect" not in row


def test_a_rank_that_is_behind_by_its_own_words_is_the_suspect() -> None:
    behind = "[rank2]:[E606 09:09:09.1 ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a dump signal due to a collective timeout from  rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: 6, last completed NCCL work: 6.This is most likely\n"
    row = hang(timeout(0) + timeout(1) + timeout(3) + behind, num_ranks=8)
    assert (row["suspect"], row["suspect_reason"]) == (
        "2",
        "had enqueued only 6 collectives; 3 ranks waited in ALLREDUCE seq 7",
    )


def test_ranks_in_different_collectives_are_told_apart() -> None:
    text = timeout(1, 7, op="BROADCAST") + "".join(
        timeout(rank, 1211, op="BROADCAST", stamp="E606 09:14:08.1") for rank in (4, 5, 6)
    )
    rows = tables_of(text, num_ranks=8)["nccl_hangs"].sort("seq")
    assert rows.select("seq", "ranks_reporting", "ranks_elsewhere", "ranks_silent", "is_first").rows() == [
        (7, "1", "4,5,6", "0,2,3,7", True),
        (1211, "4,5,6", "1", "0,2,3,7", False),
    ]
    assert rows["suspect"].null_count() == 2
    assert "1 in BROADCAST seq 7; 4,5,6 in BROADCAST seq 1211" in rows["suspect_reason"][0]


def test_a_rank_that_does_not_say_its_group_waits_with_those_of_the_only_one() -> None:
    dumb = timeout(3).splitlines(keepends=True)[0]
    row = hang(dumb + timeout(0) + timeout(1))
    assert (row["ranks_reporting"], row["process_group"], row["line_no"]) == ("0,1,3", "0(default_pg)", 1)


def test_of_several_groups_none_is_guessed() -> None:
    other = timeout(1).replace("GUID 0(default_pg)", "GUID 5(tp)")
    rows = tables_of(timeout(0) + other + timeout(3).splitlines(keepends=True)[0])["nccl_hangs"]
    assert sorted(rows["ranks_reporting"]) == ["0", "1", "3"]


def test_numbers_that_mean_nothing_do_not_hide_the_line() -> None:
    none = (1 << 64) - 1
    text = timeout(1, op="COALESCED", nin=none, nout=none).replace(
        "completed work: 6", "completed work: 3904955349522264369"
    )
    tables = tables_of(text)
    row = row_of(tables["nccl_hangs"])
    assert (row["op"], row["seq"], row["process_group"]) == ("COALESCED", 7, "0(default_pg)")
    assert not {"numel_in", "numel_out"} & set(row)
    status = row_of(tables["nccl_hang_lines"].filter(hang_line_kind="status"))
    assert (status["last_enqueued_seq"], status.get("last_completed_seq")) == (7, None)


@pytest.mark.parametrize("at", [110, 137, 160])
def test_a_terminal_may_have_wrapped_the_line(at: int) -> None:
    line = timeout(4, op="BROADCAST").splitlines()[0]
    row = hang(f"{line[:at]}\n{line[at:]}\nNCCL version 2.21.5\n")
    assert (row["op"], row["seq"], row["timeout_ms"], row["ranks_reporting"]) == ("BROADCAST", 7, 600000, "4")


def desync(*texts: str, rank: int = 0) -> str:
    lines = ["", *texts]
    head = f"[rank{rank}]:[E515 18:36:47.343377708 ProcessGroupNCCL.cpp:1937] Rank {rank}\n\t - [{rank}] Timeout at collective: "
    return head + "ALLREDUCE, #315" + "\n\t ".join(lines) + "\n\t - Snapshot of ranks' latest states:\n"


WORST = "- To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:"


def test_a_desync_report_names_the_suspect() -> None:
    report = desync(WORST, "    [5, 7] finished collective #182, but didn't join collective #183 (count from 1)")
    text = "".join(timeout(rank) + report for rank in (0, 1))
    tables = tables_of(text, num_ranks=8)
    row = row_of(tables["nccl_hangs"])
    assert row["suspect"] == "5,7"
    assert "didn't join collective #183" in str(row["suspect_reason"])
    lags = tables["nccl_hang_lines"].filter(hang_line_kind="lags")
    assert lags.select("rank", "seq").rows() == [(5, 183), (7, 183)]


def test_a_desync_report_names_ranks_that_never_came() -> None:
    text = "- To our best knowledge, ranks [3] are the lagging ranks that caused this timeout. They never joined any collectives"
    assert hang(timeout(0) + desync(text), num_ranks=8)["suspect"] == "3"


def test_all_ranks_in_the_same_collective_are_no_suspects() -> None:
    report = desync(WORST, "  - [0, 1] joined but didn't finish collective #7 (count from 1)")
    row = hang(timeout(0) + timeout(1) + report, num_ranks=2)
    assert "suspect" not in row
    assert "all 2 ranks entered" in str(row["suspect_reason"])


def test_ranks_of_another_group_are_not_taken_for_those_of_the_job() -> None:
    text = timeout(4).replace("PG ID 0 PG GUID 0(default_pg)", "PG ID 2 PG GUID 9(TP)")
    report = desync(WORST, "  - [1] joined but didn't finish collective #7 (count from 1)")
    assert "suspect" not in hang(text + report, num_ranks=8)


def cut(text: str, width: int, indent: str = "") -> str:
    """What a window of so many columns leaves of a text."""
    pieces = [line[at : at + width] for line in text.splitlines() for at in range(0, len(line), width)]
    return "".join(f"{indent}{piece.rstrip()}\n" for piece in pieces)


@pytest.mark.parametrize("width", [60, 69, 72, 80, 100, 132])
@pytest.mark.parametrize("indent", ["", "    "])
def test_a_narrow_window_leaves_several_pieces_of_a_line(width: int, indent: str) -> None:
    text = "".join(timeout(rank, enqueued=9) for rank in (0, 1, 3))
    tables = tables_of(cut(text, width, indent), num_ranks=4)
    row = row_of(tables["nccl_hangs"])
    assert (row["op"], row["seq"], row["process_group"], row["timeout_ms"]) == (
        "ALLREDUCE",
        7,
        "0(default_pg)",
        600000,
    )
    assert (row["ranks_reporting"], row["ran_for_ms"], row["suspect"]) == ("0,1,3", 600010, "2")
    status = tables["nccl_hang_lines"].filter(hang_line_kind="status")
    assert status["last_enqueued_seq"].to_list() == [9, 9, 9]


def test_a_printer_may_break_the_line_between_words() -> None:
    words = timeout(4).splitlines()[0].split(" ")
    text = "".join(" ".join(words[at : at + 6]) + "\n" for at in range(0, len(words), 6))
    assert hang(text)["ran_for_ms"] == 600010


def test_lines_that_only_follow_are_not_put_together() -> None:
    first, *_ = timeout(4, op="BROADCAST").splitlines()
    text = f"{first[:120]}\nstep 7 loss 2.5\n{first[120:]}\n"
    assert tables_of(text)["nccl_hangs"].is_empty()


def test_the_first_is_the_one_that_waited_longest() -> None:
    late = timeout(0, 9, stamp="E606 09:00:00.0", ran=1000)  # printed first, began last
    early = timeout(1, 5, stamp="E606 09:00:01.0", ran=600000)
    rows = tables_of(late + early, num_ranks=2)["nccl_hangs"]
    assert rows.select("seq", "is_first").rows() == [(9, False), (5, True)]


def test_files_of_one_run_are_read_together() -> None:
    files = {f"{rank}/stderr.log": timeout(rank) for rank in range(3)}
    row = row_of(tables_of(files, num_ranks=4)["nccl_hangs"])
    assert (row["ranks_reporting"], row["suspect"], row["source_path"]) == ("0,1,2", "3", "0/stderr.log")


def test_the_ranks_of_a_group_that_printed_no_timeout_are_named() -> None:
    """Megatron's tensor parallel ranks wait for the batch that the first of each group broadcasts: it never came."""
    row = hang(
        "37: [rank37]:[E522 03:29:26.353 ProcessGroupNCCL.cpp:694] [Rank 1] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=805827, OpType=BROADCAST, NumelIn=32768, NumelOut=32768, Timeout(ms)=600000) ran for "
        "600012 milliseconds before timing out.\n"
        "37: [rank37]:[E522 03:29:26.354 ProcessGroupNCCL.cpp:2290] [PG ID 5 PG GUID 111(TENSOR_MODEL_PARALLEL_GROUP) "
        "Rank 1]  failure detected by watchdog at work sequence id: 805827 PG status: last enqueued work: 805831, last "
        "completed work: 805826\n"
    )
    assert (row["ranks_reporting"], row.get("suspect")) == ("37", None)
    assert row["suspect_reason"] == (
        "not determinable: 1 rank timed out on BROADCAST seq 805827; rank 0 of the group printed no timeout; "
        "the group's other ranks are not printed"
    )


def test_without_the_size_of_the_job_nothing_is_guessed() -> None:
    row = hang(timeout(0) + timeout(1))
    assert (row.get("num_ranks"), row.get("suspect")) == (None, None)
    assert "other ranks are not printed" in str(row["suspect_reason"])


@pytest.mark.parametrize(
    "line",
    [
        "[E ProcessGroupNCCL.cpp:737] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, TensorShape=[1], Timeout(ms)=1800000) ran for 1804406 milliseconds before timing out.",
        "[E ProcessGroupNCCL.cpp:474] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1804406 milliseconds before timing out.",
        "5: [E ProcessGroupNCCL.cpp:474] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1804406 milliseconds before timing out.",
        "train:  0%|  | 0/3104 [00:00<?, ?it/s][rank5]:[E ProcessGroupNCCL.cpp:563] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1804406 milliseconds before timing out.",
    ],
)
def test_every_wording_and_the_global_rank(line: str) -> None:
    row = hang(line + "\n")
    assert (row["op"], row["ranks_reporting"], row["timeout_ms"], row["ran_for_ms"]) == (
        "ALLREDUCE",
        "5",
        1800000,
        1804406,
    )
    assert row.get("seq") in (None, 5)


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: [Rank 5] Caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, Timeout(ms)=1800000) ran for 1802710 milliseconds before timing out.",
        "[rank5]:[E1002 18:16:40.711756918 ProcessGroupNCCL.cpp:756] [Rank 2] Work WorkNCCL(SeqNum=7, OpType=BROADCAST, NumelIn=8, NumelOut=8, Timeout(ms)=1800000) timed out in blocking wait.",
        "[E ProcessGroupNCCL.cpp:488] [Rank 5] Work WorkNCCL(SeqNum=7, OpType=BROADCAST, NumelIn=8, NumelOut=8, Timeout(ms)=1800000) timed out in blocking wait (NCCL_BLOCKING_WAIT=1).",
    ],
)
def test_a_rank_that_waits_itself_gives_up_in_other_words(line: str) -> None:
    row = hang(line + "\n")
    assert (row["op"], row["seq"], row["ranks_reporting"], row["timeout_ms"]) == ("BROADCAST", 7, "5", 1800000)


def test_work_that_is_only_named_has_not_timed_out() -> None:
    text = "[rank5]:[I ProcessGroupNCCL.cpp:756] [Rank 5] Work WorkNCCL(SeqNum=7, OpType=BROADCAST, NumelIn=8, NumelOut=8, Timeout(ms)=9) is queued\n"
    assert tables_of(text)["nccl_hangs"].is_empty()


@pytest.mark.parametrize(
    ("status", "group", "enqueued", "completed"),
    [
        ("[PG 0 Rank 1] Timeout at NCCL work: 7, last enqueued NCCL work: 8, last completed NCCL work: 6.", "0", 8, 6),
        (
            "[Rank 1] Exception detected by watchdog at work: 7, last enqueued NCCL work: 7, last completed NCCL work: 6.",
            None,
            7,
            6,
        ),
        (
            "[PG ID 2 PG GUID 3 Rank 1] Exception (either an error or timeout) detected by watchdog at work: 7, last enqueued NCCL work: 9, last completed NCCL work: 6.",
            "3",
            9,
            6,
        ),
        (
            "[PG ID 1 PG GUID 1(tp) Rank 1]  failure detected by watchdog at work sequence id: 7 PG status: last enqueued work: 547, last completed work: -1",
            "1(tp)",
            547,
            -1,
        ),
        (
            "[PG ID 1 PG GUID 1(tp) Rank 1]  failure detected by watchdog at work sequence id: 7 PG status: last enqueued work: 9, last started work: 7 (nccl:all_reduce), last completed work: 6",
            "1(tp)",
            9,
            6,
        ),
    ],
)
def test_every_wording_of_the_status(status: str, group: str | None, enqueued: int, completed: int) -> None:
    found = row_of(facts_of(f"[rank1]:[E ProcessGroupNCCL.cpp:1] {status}\n")["watchdog"])
    assert (found["kind"], found["rank"], found["seq"], found.get("group")) == ("status", 1, 7, group)
    assert (found["enqueued"], found["completed"]) == (enqueued, completed)


def test_a_small_group_does_not_blame_the_rest_of_the_job() -> None:
    """An all-gather over 2 of 8 ranks: the others are not silent, they are not in the group."""
    text = "".join(timeout(rank, 3, op="ALLGATHER", nin=4, nout=8) for rank in (2, 3))
    row = hang(text, num_ranks=8)
    assert (row["num_ranks"], row.get("ranks_silent"), row.get("suspect")) == (2, None, None)


DIED = "[rank3]: RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed.\n"


def test_lines_of_a_hang_are_kept_once_per_rank() -> None:
    rows = tables_of(DIED + timeout(0) + timeout(0) + timeout(1), num_ranks=8)["nccl_hang_lines"]
    found = list(rows.select("line_no", "hang_line_kind", "rank", "op", "seq", "last_enqueued_seq").iter_rows())
    assert found == [
        (1, "died", 3, None, None, None),
        (2, "timeout", 0, "ALLREDUCE", 7, None),
        (3, "status", 0, None, 7, 7),
        (8, "timeout", 1, "ALLREDUCE", 7, None),
        (9, "status", 1, None, 7, 7),
    ]
    assert "Watchdog caught" in rows["text"][1]
    assert rows["printed_after_s"].to_list() == [None, 0.0, 0.0, 0.0, 0.0]
    assert rows["printed_at"].to_list()[1:] == ["606 09:09:08.164985344"] * 4


def test_lines_know_how_long_after_the_first_they_were_printed() -> None:
    text = timeout(0, stamp="E1231 23:59:58.5") + timeout(1, stamp="E1231 23:59:59.75") + timeout(2, stamp="E")
    rows = tables_of(text, num_ranks=8)["nccl_hang_lines"].filter(hang_line_kind="timeout")
    assert rows["printed_after_s"].to_list() == [0.0, 1.25, None]


def test_each_run_counts_from_its_own_first_line() -> None:
    first = timeout(0, stamp="E1231 10:00:00.0") + timeout(1, stamp="E1231 10:00:02.0")
    second = timeout(0, stamp="E1231 12:00:00.0") + timeout(1, stamp="E1231 12:00:05.0")
    watchdog = Facts.merge([facts_of(first), facts_of(second, source=1)])["watchdog"]
    rows = hang_lines(watchdog.with_columns(unit=pl.format("run{}", "source"))).filter(hang_line_kind="timeout")
    assert rows.select("source", "rank", "printed_after_s").rows() == [(0, 0, 0), (0, 1, 2), (1, 0, 0), (1, 1, 5)]


def test_without_a_timeout_a_failure_is_no_line_of_a_hang() -> None:
    assert tables_of(DIED + "NCCL version 2.21.5+cuda12.4\n")["nccl_hang_lines"].is_empty()


def test_of_very_many_hangs_the_first_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hangs, "JUDGED_HANGS", 2)
    found = tables_of("".join(timeout(rank, seq=rank) for rank in range(4)))["nccl_hangs"].sort("seq")
    reasons = found["suspect_reason"].to_list()
    assert [
        "ranks wait in different collectives (0 in ALLREDUCE seq 0; 1 in ALLREDUCE seq 1)" in why for why in reasons
    ] == [
        True,
        False,
        False,
        False,
    ]
    assert reasons[2:] == ["not judged: 4 collectives timed out, of which the first 2 are compared"] * 2
    assert found["ranks_reporting"].to_list() == ["0", "1", "2", "3"]
