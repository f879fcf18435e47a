"""`search --gpus`, `--tokens`, `--days` and `--shapes` as a user meets them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.pipeline.commands.calls import assert_one_line_error, called

ASKED = ("search", "--model", "Llama 2 7B", "--accelerator", "H100", "--seq-len", "4096", "--gbs-tokens", "4194304")


def test_a_range_is_answered_in_a_sentence_and_a_line_for_each_size() -> None:
    done = called(*ASKED, "--gpus", "1-64", "--tokens", "2T")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:8]] == ["1", "2", "4", "8", "16", "32", "64"]
    assert "days" in lines[0]
    assert "predicted to run out of memory" in lines[1]
    assert lines[-1].startswith("The model fits from ")


def test_a_target_is_answered_with_the_fewest(tmp_path: Path) -> None:
    out = tmp_path / "sizes.csv"
    done = called(*ASKED, "--tokens", "1T", "--days", "30", "--out", out, "--json")
    value = json.loads(done.stdout)
    met = [size for size in value["sizes"] if size["days"] is not None and size["days"] <= 30]
    assert value["num_gpus"] == min(size["num_gpus"] for size in met)
    assert value["answer"].startswith(f"{value['num_gpus']:,} accelerators train on 1T tokens in ")
    assert [int(row["num_gpus"]) for row in csv.DictReader(out.open())] == [size["num_gpus"] for size in value["sizes"]]


def test_a_target_out_of_reach_says_what_the_fastest_takes() -> None:
    done = called(*ASKED, "--gpus", "8,16", "--tokens", "100T", "--days", "1", "--json")
    value = json.loads(done.stdout)
    assert value["num_gpus"] is None
    assert value["answer"].startswith(
        "None of these sizes trains on 100T tokens in 1 days at this batch: 16 accelerators"
    )


def test_near_shapes_stand_beside_the_layouts() -> None:
    done = called(*ASKED, "--nodes", "2", "--shapes", "--json")
    value = json.loads(done.stdout)
    assert value["layouts"]
    assert [one["gain"] for one in value["shapes"]] == sorted((one["gain"] for one in value["shapes"]), reverse=True)
    assert {"change", "gain", "mfu", "layout", "shape"} <= set(value["shapes"][0])
    assert "near shape" in called(*ASKED, "--nodes", "2", "--shapes").stdout.casefold()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "Name the cluster with --nodes, or ask for its size with --gpus"),
        (("--nodes", "2", "--gpus", "8-16"), "--nodes names one size"),
        (("--nodes", "2", "--days", "3"), "--nodes names one size"),
        (("--nodes", "2", "--tokens", "1T"), "--tokens goes with --gpus or --days"),
        (("--gpus", "8-16", "--days", "3"), "--days needs --tokens"),
        (("--gpus", "8-16", "--tokens", "1T", "--days", "nan"), "--days must be positive, not nan"),
        (("--gpus", "16-8"), "--gpus takes a range that doubles"),
        (("--gpus", "eight"), "--gpus takes a range that doubles"),
        (("--gpus", "0"), "--gpus takes a range that doubles"),
        (("--gpus", "12"), "--gpus 12 is no whole number of nodes of 8"),
        (("--gpus", "8", "--tokens", "many"), "--tokens takes a number such as 300B, 15T or 1.5e12, not 'many'"),
        (("--gpus", "8", "--tokens", "1e999"), "--tokens takes a number"),
        (("--gpus", "1"), "No size up to 1 accelerators has a layout that fits: predicted to run out of memory"),
        (("--gpus", "8", "--shapes"), "--shapes looks at one size: give --nodes"),
    ],
)
def test_what_cannot_be_asked_is_one_line(args: tuple[str, ...], said: str) -> None:
    assert_one_line_error(called(*ASKED, *args), said, code=2)
