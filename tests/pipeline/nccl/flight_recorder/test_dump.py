"""Dumps of the flight recorder: read safely whatever they hold, and judged across ranks."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.nccl.flight_recorder.dump import records
from sweepscope.pipeline.nccl.flight_recorder.hangs import flight_hangs
from tests.paths import CORPUS, NO_CORPUS
from tests.pipeline.ingest.test_nccl_collector import NOW, kinds, parsed

FIXTURES = CORPUS / "nccl" / "fr_generated"


def entry(seq: int, **changed: Any) -> dict[str, Any]:
    """One record as torch 2.10's writer has it."""
    return {
        "frames": [{"name": "all_reduce", "filename": "distributed_c10d.py", "line": 4174}],
        "record_id": seq - 1,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": "nccl:all_reduce",
        "time_created_ns": 10**18 + seq,
        "input_sizes": [[8, 16]],
        "input_dtypes": ["Float"],
        "output_sizes": [[8, 16]],
        "output_dtypes": ["Float"],
        "state": "completed",
        "time_discovered_started_ns": 5,
        "time_discovered_completed_ns": 6,
        "retired": True,
        "timeout_ms": 600000,
        "is_p2p": False,
        **changed,
    }


WAITING: dict[str, Any] = {"state": "started", "retired": False, "time_discovered_completed_ns": None}


def dump(entries: list[dict[str, Any]], *, ranks: str | None = "[0, 1, 2, 3]", **changed: Any) -> dict[str, Any]:
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}} if ranks else {}
    status = {"0": {"last_enqueued_collective": 9, "last_started_collective": 9, "last_completed_collective": -1}}
    return {"version": "2.10", "pg_config": config, "pg_status": status, "entries": entries, **changed}


def judged(by_rank: Mapping[int, list[dict[str, Any]]], **changed: Any) -> list[dict[str, Any]]:
    frames = [
        records(pickle.dumps(dump(entries, **changed), protocol=2), rank=rank)[0].with_columns(
            source=pl.lit(rank, pl.Int64)
        )
        for rank, entries in by_rank.items()
    ]
    return flight_hangs(pl.concat(frames))


def history(last: int, **of_last: Any) -> list[dict[str, Any]]:
    return [*(entry(seq) for seq in range(1, last)), entry(last, **of_last)]


def of(group: str, seq: int, **changed: Any) -> dict[str, Any]:
    """A record of a group."""
    return entry(seq, process_group=(group, None), **changed)


def groups(**ranks: str) -> dict[str, Any]:
    return {name: {"name": name, "desc": None, "ranks": listed} for name, listed in ranks.items()}


class TestReading:
    def test_a_record_becomes_a_row(self) -> None:
        frame, broken = records(pickle.dumps(dump([entry(7, duration_ms=1.5)]), protocol=2), rank=3)
        row = frame.row(0, named=True)
        assert broken == 0
        assert (row["rank"], row["seq"], row["op"], row["profiling_name"]) == (3, 7, "all_reduce", "nccl:all_reduce")
        assert (row["pg_name"], row["pg_desc"], row["pg_ranks"]) == ("0", "default_pg", "0,1,2,3")
        assert (row["input_sizes"], row["input_dtypes"], row["op_state"]) == ("[[8, 16]]", "Float", "completed")
        assert (row["duration_ms"], row["timeout_ms"], row["last_completed_seq"]) == (1.5, 600000, -1)
        assert row["stack"] == "distributed_c10d.py:4174 all_reduce"

    def test_json_says_the_same_as_pickle(self) -> None:
        found = dump([entry(7, **WAITING)])
        printed = json.loads(json.dumps(found))
        printed["pg_status"]["0"] = {name: str(value) for name, value in printed["pg_status"]["0"].items()}
        printed["entries"][0]["time_discovered_completed_ns"] = 0
        first, _ = records(pickle.dumps(found, protocol=4), rank=0)
        second, _ = records(json.dumps(printed).encode(), rank=0)
        assert first.equals(second)

    def test_an_early_format_lacks_fields(self) -> None:
        old = {
            "version": "2.0",
            "pg_config": {},
            "entries": [{"pg_id": 0, "seq_id": 4, "profiling_name": "nccl:all_reduce", "state": "started"}],
        }
        frame, _ = records(pickle.dumps(old, protocol=2), rank=0)
        assert frame.select("seq", "op", "op_state", "timeout_ms").rows() == [(4, "all_reduce", "started", None)]

    @pytest.mark.parametrize(
        "value",
        [
            {"entries": [1, None, "x", {}]},
            {
                "entries": [
                    {
                        "process_group": 5,
                        "input_sizes": {"a": 1},
                        "frames": 3,
                        "record_id": 2**70,
                        "collective_seq_id": "9" * 30,
                    }
                ]
            },
            {"pg_config": {"0": {"ranks": "__import__('os')"}}, "entries": [entry(1)]},
            {"entries": [], "pg_config": 3, "pg_status": []},
        ],
    )
    def test_values_of_the_wrong_kind_are_unknown(self, value: dict[str, Any]) -> None:
        frame, broken = records(pickle.dumps(value, protocol=2), rank=0)
        entries = value["entries"]
        assert frame.height + broken == len(entries)
        assert frame["pg_ranks"].null_count() == frame.height

    @pytest.mark.parametrize(
        ("data", "why"),
        [
            (b"\x80\x04cposix\nsystem\n\x8c\x02id\x85R.", "GLOBAL"),
            (pickle.dumps(dump([entry(1)]), protocol=2)[:-40], "ends"),
            (pickle.dumps([1, 2]), "no entries"),
            (b'{"a": 1}', "no entries"),
            (b"not a dump", "Expecting value"),
        ],
    )
    def test_anything_else_is_refused(self, data: bytes, why: str) -> None:
        with pytest.raises(ValueError, match=why):
            records(data, rank=0)


class TestVerdict:
    def test_a_healthy_job_has_none(self) -> None:
        assert judged({rank: history(5) for rank in range(4)}) == []
        assert judged({rank: history(5, **WAITING) for rank in range(4)}) == []  # under way

    def test_who_did_not_join_is_the_suspect(self) -> None:
        (row,) = judged({0: history(6, **WAITING), 1: history(6, **WAITING), 2: history(5), 3: history(6, **WAITING)})
        assert (row["op"], row["seq"], row["suspect"], row["ranks_silent"]) == ("all_reduce", 6, "2", "2")
        assert row["ranks_reporting"] == "0,1,3"
        assert row["suspect_reason"] == "did not join all_reduce seq 6, its last is 5; 3 of 4 ranks joined"

    def test_the_first_rank_is_not_presumed_innocent(self) -> None:
        (row,) = judged({0: history(5), **{rank: history(6, **WAITING) for rank in (1, 2, 3)}})
        assert row["suspect"] == "0"

    def test_several_suspects(self) -> None:
        (row,) = judged({0: history(6, **WAITING), 1: history(5), 2: history(5), 3: history(6, **WAITING)})
        assert row["suspect"] == "1,2"

    def test_a_missing_dump_is_a_finding(self) -> None:
        (row,) = judged({rank: history(6, **WAITING) for rank in (0, 1, 3)})
        assert (row["suspect"], row["num_ranks"]) == ("2", 4)
        assert "no dump" in row["suspect_reason"]

    def test_a_missing_dump_does_not_hide_who_did_not_join(self) -> None:
        (row,) = judged({0: history(6, **WAITING), 1: history(6, **WAITING), 3: history(5)})
        assert row["suspect"] == "3"
        assert row["suspect_reason"].endswith("there is no dump of 2")

    @pytest.mark.parametrize(
        ("changed", "aspect"),
        [
            ({"profiling_name": "nccl:all_gather"}, "operation"),
            ({"input_sizes": [[8, 17]], "output_sizes": [[8, 17]]}, "sizes"),
            ({"input_dtypes": ["Half"], "output_dtypes": ["Half"]}, "types"),
        ],
    )
    @pytest.mark.parametrize("odd", [0, 2])
    def test_the_minority_is_the_suspect(self, changed: dict[str, Any], aspect: str, odd: int) -> None:
        by_rank = {rank: history(6, **WAITING, **(changed if rank == odd else {})) for rank in range(4)}
        (row,) = judged(by_rank)
        assert (row["suspect"], row["seq"]) == (str(odd), 6)
        assert row["suspect_reason"].startswith(f"{aspect} of all_reduce seq 6 differ")

    def test_without_a_majority_nobody_is_blamed(self) -> None:
        half = {"input_dtypes": ["Half"], "output_dtypes": ["Half"]}
        (row,) = judged({rank: history(6, **WAITING, **(half if rank < 2 else {})) for rank in range(4)})
        assert row["suspect"] is None
        assert "no side has a majority" in row["suspect_reason"]

    def test_a_difference_that_all_have_survived_is_no_hang(self) -> None:
        odd = {"input_sizes": [[9]], "output_sizes": [[9]]}
        assert judged({rank: [*history(5), entry(6, **(odd if rank == 2 else {}))] for rank in range(4)}) == []

    def test_uneven_sizes_of_an_all_to_all_are_no_mismatch(self) -> None:
        by_rank = {
            rank: history(6, profiling_name="nccl:all_to_allv", input_sizes=[[rank + 1]], output_sizes=[[4 - rank]])
            for rank in range(4)
        }
        assert judged(by_rank) == []

    def test_a_gpu_that_has_not_started_is_the_suspect(self) -> None:
        stuck = {"state": "scheduled", "retired": True}
        (row,) = judged(
            {rank: history(6, **({**WAITING, "retired": True} if rank != 1 else stuck)) for rank in range(4)}
        )
        assert row["suspect"] == "1"
        assert "its GPU has not started it" in row["suspect_reason"]

    def test_when_all_are_in_it_nobody_is_blamed(self) -> None:
        (row,) = judged({rank: history(6, **{**WAITING, "retired": True}) for rank in range(4)})
        assert row["suspect"] is None
        assert "not determinable" in row["suspect_reason"]

    def test_buffers_that_wrapped_at_different_places_are_aligned(self) -> None:
        by_rank = {rank: history(60, **WAITING)[-(10 + rank) :] for rank in range(3)}
        (row,) = judged({**by_rank, 3: history(59)[-5:]})
        assert (row["seq"], row["suspect"]) == (60, "3")

    def test_who_waits_in_another_group_is_no_suspect(self) -> None:
        """A pipeline stage waits for a rank that waits for its own peer: that one has stopped."""
        by_rank = {0: [of("pp", 1, **WAITING)], 2: [of("tp", 1), of("tp", 2, **WAITING)], 3: [of("tp", 1)]}
        rows = judged(by_rank, pg_config=groups(pp="[0, 2]", tp="[2, 3]"))
        assert [(row["process_group"], row["suspect"], row["ranks_elsewhere"], row["is_first"]) for row in rows] == [
            ("pp", None, "2", False),
            ("tp", "3", None, True),
        ]
        assert rows[0]["suspect_reason"] == (
            "not determinable here: 2 waits in all_reduce seq 2 of tp and so did not join all_reduce seq 1, "
            "it has none; 1 of 2 ranks joined"
        )

    def test_in_a_circle_the_few_that_took_another_way_are_suspects(self) -> None:
        whole = {rank: [of("dp", 1, **WAITING)] for rank in (0, 2, 3)}
        rows = judged({**whole, 1: [of("tp", 1, **WAITING)]}, pg_config=groups(dp="[0, 1, 2, 3]", tp="[0, 1]"))
        assert [(row["process_group"], row["suspect"], row["ranks_elsewhere"]) for row in rows] == [
            ("dp", "1", "1"),
            ("tp", None, "0"),
        ]

    def test_in_a_circle_of_two_nobody_is_blamed(self) -> None:
        by_rank = {0: [of("a", 1, **WAITING)], 1: [of("b", 1, **WAITING)]}
        rows = judged(by_rank, pg_config=groups(a="[0, 1]", b="[0, 1]"))
        assert [row["suspect"] for row in rows] == [None, None]

    def test_the_end_of_a_batch_of_sends_is_no_collective(self) -> None:
        """Its number is that of the collective before it, and older versions mark its parts only."""
        batch = [
            entry(5, profiling_name="nccl:send 1->2", is_p2p=True, p2p_seq_id=3),
            entry(5, profiling_name="nccl:coalesced", p2p_seq_id=3, input_sizes=[], output_sizes=[]),
        ]
        assert judged({rank: [*history(5), *(batch if rank == 1 else [])] for rank in range(4)}) == []
        by_rank = {rank: [*history(5), *(batch if rank == 1 else []), entry(6, **WAITING)] for rank in (0, 1, 3)}
        (row,) = judged({**by_rank, 2: history(5)})
        assert (row["op"], row["suspect"]) == ("all_reduce", "2")

    def test_a_dump_that_does_not_list_the_ranks_of_a_group_is_of_the_others_group(self) -> None:
        frames = [
            records(pickle.dumps(dump(history(6, **WAITING), ranks="[0, 1]" if rank else None), protocol=2), rank=rank)[
                0
            ].with_columns(source=pl.lit(rank, pl.Int64))
            for rank in (0, 1)
        ]
        assert flight_hangs(pl.concat(frames)) == []  # under way

    def test_without_timing_nobody_knows_what_has_started(self) -> None:
        """NCCL's events of the start exist with TORCH_NCCL_ENABLE_TIMING only."""
        unseen = {"time_discovered_started_ns": None}
        by_rank = {
            rank: [entry(seq, **unseen) for seq in range(1, 6)]
            + [entry(6, **unseen, **({"state": "scheduled"} if rank == 1 else {}))]
            for rank in range(4)
        }
        (row,) = judged(by_rank)
        assert row["suspect"] is None
        assert row["suspect_reason"].startswith("not determinable: all ranks entered all_reduce seq 6 and 1 did not")

    def test_a_record_that_was_closed_without_an_end_has_timed_out(self) -> None:
        closed = {"state": "scheduled", "retired": True, "time_discovered_started_ns": None}
        (row,) = judged({rank: history(6, **closed) for rank in range(4)})
        assert (row["suspect"], row["seq"]) == (None, 6)
        assert "0,1,2,3 did not complete it" in row["suspect_reason"]

    def test_groups_are_judged_on_their_own(self) -> None:
        def tp(seq: int, pair: int, **changed: Any) -> dict[str, Any]:
            return entry(seq, process_group=(str(pair), "tp"), pg_id=pair, **changed)

        config = {
            "1": {"name": "1", "desc": "tp", "ranks": "[0, 1]"},
            "2": {"name": "2", "desc": "tp", "ranks": "[2, 3]"},
        }
        by_rank = {0: [tp(1, 1)], 1: [tp(1, 1)], 2: [tp(1, 2), tp(2, 2, **WAITING)], 3: [tp(1, 2)]}
        (row,) = judged(by_rank, pg_config=config)
        assert (row["process_group"], row["suspect"], row["num_ranks"]) == ("2(tp)", "3", 2)


def test_a_set_of_dumps_is_one_unit_through_the_ingest(tmp_path: Path) -> None:
    for rank in range(3):
        last = history(5) if rank == 1 else history(6, **WAITING)
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump(last, ranks="[0, 1, 2]"), protocol=2))
    (tmp_path / "nccl_trace_rank_3").write_bytes(b"\x80\x02}")
    tables = parsed(tmp_path)
    assert tables["files"]["unit"].unique().to_list() == [f"{tmp_path}/nccl_trace_rank_*"]
    assert set(kinds(tables).values()) == {("flight_record", "nccl"), ("flight_record", None)}
    assert tables["files"].filter(status="rejected")["error"].str.contains("ends before its STOP").to_list() == [True]
    assert tables["nccl_hangs"].select("suspect", "evidence_source").rows() == [("1", "flight_recorder")]
    assert tables["flight_records"]["rank"].value_counts(sort=True).height == 3
    assert tables["runs"].is_empty()


def test_a_rank_whose_dump_was_cut_is_no_suspect_for_that(tmp_path: Path) -> None:
    for rank in range(3):
        whole = pickle.dumps(dump(history(6, **WAITING)), protocol=2)
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(whole)
        (tmp_path / "nccl_trace_rank_3").write_bytes(whole[:-100])
    tables = parsed(tmp_path)
    assert tables["nccl_hangs"].select("suspect", "suspect_reason").rows() == [
        (None, "not determinable: 3 of 4 ranks wait in all_reduce seq 6; the dump of 3 cannot be read")
    ]
    (tmp_path / "nccl_trace_rank_3").write_bytes(pickle.dumps(dump([]), protocol=2))
    assert parsed(tmp_path)["nccl_hangs"].select("suspect", "suspect_reason").rows() == [
        ("3", "did not join all_reduce seq 6, it has none; 3 of 4 ranks joined")
    ]


def test_dumps_are_read_again_when_one_more_appears(tmp_path: Path) -> None:
    (tmp_path / "nccl_trace_rank_0").write_bytes(pickle.dumps(dump(history(6, **WAITING), ranks="[0, 1]"), protocol=2))
    first = parsed(tmp_path)
    assert first["nccl_hangs"]["suspect"].to_list() == ["1"]
    (tmp_path / "nccl_trace_rank_1").write_bytes(pickle.dumps(dump(history(6, **WAITING), ranks="[0, 1]"), protocol=2))
    found = plan.find([str(tmp_path)])
    assert plan.plan(found, first["files"], first["runs"], now=NOW).height == 2


@pytest.mark.skipif(not FIXTURES.exists(), reason=NO_CORPUS)
@pytest.mark.parametrize("name", ["gloo_trace_rank_{}", "gloo_trace_json_rank_{}.json"])
@pytest.mark.parametrize("without", [None, 0, 1, 2, 3])
def test_generated_dumps_name_rank_2_also_when_one_is_missing(name: str, without: int | None) -> None:
    frames = [
        records((FIXTURES / name.format(rank)).read_bytes(), rank=rank)[0].with_columns(source=pl.lit(rank, pl.Int64))
        for rank in range(4)
        if rank != without
    ]
    (row,) = flight_hangs(pl.concat(frames))
    assert (row["op"], row["seq"], row["suspect"]) == ("all_reduce", 61, "2")


RECORDED = Path(__file__).parent / "recorded"


def recorded(*ranks: int, kind: str = ".") -> pl.DataFrame:
    frames = [
        records((RECORDED / kind / f"nccl_trace_rank_{rank}.json").read_bytes(), rank=rank)[0].with_columns(
            source=pl.lit(rank, pl.Int64)
        )
        for rank in ranks
    ]
    return pl.concat(frames)


@pytest.mark.parametrize("ranks", [(0, 1, 2, 3), (0, 2, 3), (2, 3)])
def test_recorded_dumps_name_the_rank_that_slept_though_all_records_are_closed(ranks: tuple[int, ...]) -> None:
    (hang,) = flight_hangs(recorded(*ranks))
    assert (hang["op"], hang["seq"], hang["suspect"]) == ("all_reduce", 7, "2")
    assert hang["process_group"] == "0(default_pg)"
    assert "its last is 6" in hang["suspect_reason"]


def test_recorded_dumps_without_the_one_that_slept_show_no_hang() -> None:
    assert [hang["suspect"] for hang in flight_hangs(recorded(0, 1))] == []


def test_recorded_dumps_of_two_orders_name_the_rank_that_went_another_way_than_most() -> None:
    whole, pair = flight_hangs(recorded(0, 1, 2, 3, kind="order"))
    assert (whole["process_group"], whole["seq"], whole["suspect"], whole["is_first"]) == (
        "0(default_pg)",
        7,
        "1",
        True,
    )
    assert (pair["num_ranks"], pair["seq"], pair["suspect"], pair["ranks_elsewhere"]) == (2, 4, None, "0")


def test_a_root_that_is_ahead_in_broadcasts_hangs_nowhere() -> None:
    closed = {"state": "scheduled", "retired": True, "profiling_name": "gloo:broadcast"}
    calls = {rank: [entry(seq, **closed) for seq in range(1, 4 + (rank == 0))] for rank in range(4)}
    assert judged(calls) == []
    needs_all = {0: [*calls[0][:3], entry(4, **{**closed, "profiling_name": "gloo:barrier"})]}
    assert [hang["suspect"] for hang in judged({**calls, **needs_all})] == ["1,2,3"]


def test_a_record_that_ends_before_it_starts_is_a_reject(tmp_path: Path) -> None:
    odd = entry(2, time_discovered_started_ns=6, time_discovered_completed_ns=5)
    (tmp_path / "nccl_trace_rank_0").write_bytes(pickle.dumps(dump([entry(1), odd], ranks="[0]"), protocol=2))
    found = parsed(tmp_path)
    assert found["flight_records"]["seq"].to_list() == [1, 2]
    assert found["flight_records"].row(1, named=True)["found_completed_ns"] is None
    assert found["rejects"].select("line_no", "column", "reason").rows() == [
        (
            2,
            "found_started_ns, found_completed_ns",
            "the value was left out: found_started_ns comes after found_completed_ns, got 6, 5",
        )
    ]
