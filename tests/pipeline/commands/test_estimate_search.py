"""The verbs `estimate` and `search` as a user meets them: files, exit codes, one clear line for what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.__main__ import main
from tests.pipeline.estimate.rows.test_estimate_rows import row

SEARCH = {
    "--model": "Llama 2 7B",
    "--nodes": "2",
    "--accelerator": "H100-SXM-80GB",
    "--seq-len": "4096",
    "--gbs-tokens": "1048576",
    "--top": "3",
}


def search_args(**changes: str) -> list[str]:
    given = {**SEARCH, **{f"--{name.replace('_', '-')}": value for name, value in changes.items()}}
    return ["search", *(part for pair in given.items() for part in pair)]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_estimate_reads_and_writes_tables(tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    given, out = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    table = pl.DataFrame([row(), row(accelerator="Cerebras")])
    table.write_csv(given) if ending == "csv" else table.write_parquet(given)
    assert main(["estimate", str(given), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "Estimated 1 of 2 rows" in said
    assert "unknown accelerator: Cerebras" in said
    got = pl.read_csv(out) if ending == "csv" else pl.read_parquet(out)
    assert got["est_status"][0] == "ok"
    assert got["est_step_time_s"][1] is None


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["estimate", "/no/such.csv", "--out", "x.csv"], "No such file: /no/such.csv"),
        (["estimate", "x.csv", "--out", "x.txt"], "--out must end in .csv or .parquet"),
        (search_args(model="nope"), "Unknown model: nope"),
        (search_args(nodes="0"), "--nodes must be at least 1, not 0"),
        (search_args(accelerator="X9"), "Unknown accelerator: X9"),
        (search_args(gbs_tokens="4097"), "is no multiple of --seq-len"),
        (search_args(margin="1.5"), "--margin is a share between 0 and 1"),
        (search_args(network_gbit="nan"), "--network-gbit must be positive, not nan"),
        (search_args(software_year="24.5"), "--software-year is a year such as 2026.5, not 24.5."),
        (search_args(framework="nanotrn"), "Unknown framework: nanotrn. Did you mean nanotron or nanogpt?"),
        (search_args(framework="foo"), "Without --framework the card's constants are used."),
        ([*search_args(accelerator="A100"), "--fp8"], "A100 has no FP8: leave --fp8 out"),
        ([*search_args(accelerator="H100"), "--fp4"], "H100 has no FP4: leave --fp4 out"),
        (search_args(model="Llama 3.1 405B"), "fits: the leanest needs"),
        (search_args(model="Llama 3.1 405B"), "with 5 % to spare. Take more nodes, or a smaller --margin."),
        (search_args(nodes="13", gpus_per_node="7", gbs_tokens="4096"), "can be launched; most often"),
    ],
)
def test_what_cannot_be_is_one_clear_line(args: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    said = capsys.readouterr().err.strip()
    assert line in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("a.csv", None, "a.csv is a directory. Give a CSV or Parquet file."),
        ("a.csv", "model,nodes\n", "a.csv has no rows below its header. Give a table with a row per configuration."),
        ("a.csv", "", "a.csv is no readable table: empty CSV. Give CSV or Parquet."),
        ("config.json", "[1]", "config.json is no JSON configuration: it holds no names."),
        ("config.json", "{", "config.json is no JSON configuration: Expecting"),
        ("gone.json", None, "gone.json: Is a directory. Give the config.json of a model."),
    ],
)
def test_a_file_that_cannot_be_is_named_with_the_remedy(
    tmp_path: Path, name: str, content: str | None, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text(content) if content is not None else path.mkdir()
    args = ["estimate", str(path), "--out", str(tmp_path / "out.csv")]
    assert main(search_args(model=str(path)) if path.suffix == ".json" else args) in (1, 2)
    said = capsys.readouterr().err.strip()
    assert line in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "out.csv").exists()


def test_search_prints_layouts_and_the_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(search_args()) == 0
    said = capsys.readouterr().out
    for words in ("MFU %", "1 Fit:", "2 Batch:", "3 Throughput:", "examined", "pruned:"):
        assert words in said


def test_search_answers_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*search_args(), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert len(value["layouts"]) == 3
    speeds = [layout["est_tokens_per_s_per_gpu"] for layout in value["layouts"]]
    assert speeds == sorted(speeds, reverse=True)
    assert value["fitting"] <= value["launchable"] <= value["examined"]


def test_search_reads_a_hugging_face_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "model_type": "llama",
                "hidden_act": "silu",
                "hidden_size": 4096,
                "intermediate_size": 11008,
                "num_attention_heads": 32,
                "num_hidden_layers": 32,
                "num_key_value_heads": 32,
                "vocab_size": 32000,
                "tie_word_embeddings": False,
            }
        )
    )
    assert main([*search_args(model=str(config)), "--json"]) == 0
    from_config = json.loads(capsys.readouterr().out)["layouts"]
    assert main([*search_args(), "--json"]) == 0
    assert from_config == json.loads(capsys.readouterr().out)["layouts"]
    config.write_text("{}")
    assert main(search_args(model=str(config))) == 1
    assert "lacks num_hidden_layers" in capsys.readouterr().err


def test_search_says_what_it_ranks_by(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*search_args(framework="nanotron"), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["ranked_by"] == "expected"
    best = value["layouts"][0]
    assert best["expected_step_time_s"] == pytest.approx(best["est_penalty"] * best["est_step_time_s"])
    assert best["est_step_time_lo_s"] < best["est_step_time_hi_s"]
    assert main([*search_args(framework="nanotron", rank="physics"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ranked_by"] == "physics"


def test_search_cannot_expect_what_was_never_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(search_args(rank="expected")) == 2
    assert "Nothing was learned of an unnamed framework" in capsys.readouterr().err


def test_ceiling_answers_rows_that_leave_part_of_their_layout_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, out = tmp_path / "in.csv", tmp_path / "out.csv"
    open_row = row(micro_batch_size=None, grad_accum=None, global_batch_size_seqs=128)
    pl.DataFrame([open_row, {**open_row, "accelerator": "Cerebras"}]).write_csv(given)
    assert main(["estimate", str(given), "--out", str(out), "--ceiling", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["with_ceiling"] == 1
    estimated = pl.read_csv(out)
    assert "micro-batches of one sequence" in estimated["est_assumptions"][0]
    assert estimated["ceiling_mfu"][0] >= estimated["est_mfu"][0]
    assert estimated["ceiling_status"][0] == "ok"
    assert estimated["ceiling_status"][1].startswith("unknown accelerator")
    assert 0.2 < estimated["ceiling_mfu"][0] < 0.75


def test_estimate_does_not_write_over_its_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, linked = tmp_path / "in.csv", tmp_path / "linked.csv"
    pl.DataFrame([row()]).write_csv(given)
    linked.symlink_to(given)
    before = given.read_bytes()
    for out in (given, linked):
        assert main(["estimate", str(given), "--out", str(out)]) == 2
        assert "--out would overwrite its input" in capsys.readouterr().err
    assert given.read_bytes() == before
