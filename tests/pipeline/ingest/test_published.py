"""The bundled tables load whole, and say what their sources say. Figures below are the sources' own."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from sweepscope import data
from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.ingest.published import load_published, published_ledger
from sweepscope.pipeline.ingest.validate import validate
from sweepscope.schemas.registry import TABLES

HEADER = "source_id,source_url,table_or_figure,model,num_gpus,tokens_per_s_per_gpu,my_own"


@pytest.fixture(scope="module")
def loaded() -> dict[str, pl.DataFrame]:
    return load_published(data.PUBLISHED)


def rows(loaded: dict[str, pl.DataFrame], dataset: str) -> pl.DataFrame:
    own = [
        "run_id",
        "total_params_b",
        "mfu_pct",
        "hfu_pct",
        "comparability",
        "notes",
        "extra",
        "verification",
        "table_or_figure",
        "source_id",
    ]
    return (
        loaded["runs"]
        .filter(pl.col("sweep") == dataset)
        .join(loaded["published_runs"].select(own, as_printed="model"), on="run_id", maintain_order="left")
    )


def test_every_row_satisfies_its_schema(loaded: dict[str, pl.DataFrame]) -> None:
    assert {name: validate(TABLES[name], frame).rejects.height for name, frame in loaded.items()} == dict.fromkeys(
        loaded, 0
    )


def test_every_published_result_also_stands_in_runs(loaded: dict[str, pl.DataFrame]) -> None:
    assert loaded["runs"]["run_id"].to_list() == loaded["published_runs"]["run_id"].to_list()
    assert loaded["runs"]["origin"].unique().to_list() == ["published"]
    assert loaded["files"]["rows_parsed"].sum() == loaded["runs"].height


def test_loading_twice_gives_the_same_rows(loaded: dict[str, pl.DataFrame]) -> None:
    again = load_published(data.PUBLISHED)
    for name, frame in loaded.items():
        assert_frame_equal(again[name], frame)


def test_paths_do_not_depend_on_where_the_package_lies(loaded: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    source = data.PUBLISHED / "torchtitan.csv"
    (tmp_path / source.name).write_bytes(source.read_bytes())
    copied = load_published(tmp_path)["runs"]
    assert copied["source_path"].unique().to_list() == ["data/published/torchtitan.csv"]
    assert copied["run_id"].is_in(loaded["runs"]["run_id"].implode()).all()


def test_line_numbers_are_lines_of_the_text(loaded: dict[str, pl.DataFrame]) -> None:
    name = "ultrascale_playbook_all_runs"
    lines = gzip.decompress((data.PUBLISHED / f"{name}.csv.gz").read_bytes()).decode().split("\n")
    for line_no, printed in rows(loaded, name).select("line_no", "table_or_figure").sample(5, seed=1).iter_rows():
        assert printed in lines[line_no - 1]


def test_playbook_has_all_its_runs(loaded: dict[str, pl.DataFrame]) -> None:
    playbook = rows(loaded, "ultrascale_playbook_all_runs")
    assert dict(playbook["status"].value_counts().iter_rows()) == {"completed": 1728, "failed": 1578}
    assert sorted(playbook["model"].unique()) == ["Llama 1.34B", "Llama 3.57B", "Llama 8.86B", "Llama 80B"]
    assert "llama-1B (1.34B)" in playbook["as_printed"].to_list()


def test_recomputed_mfu_counts_the_tied_embedding_once(loaded: dict[str, pl.DataFrame]) -> None:
    playbook = rows(loaded, "ultrascale_playbook_all_runs").filter(pl.col("status") == "completed")
    once = playbook["extra"].str.json_path_match("$.mfu_pct_tied_consistent").cast(pl.Float64)
    assert once.null_count() == 0
    assert (100 * playbook["mfu"] - once).abs().max() < 0.1


def test_mislabelled_80b_runs_are_kept_out(loaded: dict[str, pl.DataFrame]) -> None:
    odd = rows(loaded, "ultrascale_playbook_all_runs").filter(pl.col("quarantine_reason").is_not_null())
    assert odd.height == 14
    assert odd["quarantine_reason"].unique().to_list() == ["the shape has 70.6B parameters, the label says 80.0B"]
    assert odd["num_kv_heads"].unique().to_list() == [8]


def test_claimed_best_rows_count_once(loaded: dict[str, pl.DataFrame]) -> None:
    best = rows(loaded, "ultrascale_playbook_best")
    assert best.height == 26
    assert best["duplicate_of"].unique().to_list() == ["ultrascale_playbook_all_runs"]
    sweep = rows(loaded, "ultrascale_playbook_all_runs")
    assert best.join(sweep, on=["model", "num_nodes", "layout", "tokens_per_s_per_gpu"], how="semi").height == 26


def test_nanotron_gigabytes_are_binary_and_torchtitans_are_not(loaded: dict[str, pl.DataFrame]) -> None:
    assert rows(loaded, "ultrascale_playbook_best")["mem_peak_allocated_bytes"][0] == round(41.76 * 2**30)
    assert rows(loaded, "torchtitan")["mem_peak_reserved_bytes"][0] == 88_476_000_000


def test_frontier_covers_every_model_of_the_slides(loaded: dict[str, pl.DataFrame]) -> None:
    names = " | ".join(rows(loaded, "frontier_configs")["as_printed"].to_list())
    for model in (
        "LLaMA 1",
        "LLaMA 2",
        "LLaMA 3 ",
        "LLaMA 3.1",
        "PaLM 540B",
        "PaLM 2",
        "Gemini 1.0 Ultra",
        "Gemini 1.5 Pro",
        "DeepSeek LLM 67B",
        "DeepSeek-V2",
        "DeepSeek-V3",
    ):
        assert model in names


def test_llama_3_rows_are_those_of_table_4(loaded: dict[str, pl.DataFrame]) -> None:
    table_4 = rows(loaded, "frontier_configs").filter(pl.col("source_id") == "llama3_2024")
    assert table_4.select(
        "num_gpus", "tp", "cp", "pp", "dp", "seq_len", "tflops_per_gpu_logged", "mfu_pct", "gbs_tokens"
    ).rows() == [
        (8192, 8, 1, 16, 64, 8192, 430, 43, 16_777_216),
        (16384, 8, 1, 16, 128, 8192, 400, 41, 16_777_216),
        (16384, 8, 16, 16, 8, 131072, 380, 38, 16_777_216),  # CP does not multiply the batch
    ]


def test_palm_keeps_mfu_and_hfu_apart(loaded: dict[str, pl.DataFrame]) -> None:
    palm = rows(loaded, "frontier_configs").filter(pl.col("model") == "PaLM 540B")
    paper, slides = palm.sort("source_id", descending=True).to_dicts()
    assert (paper["mfu_pct"], paper["hfu_pct"], paper["dp"] * paper["tp"]) == (46.2, 57.8, 6144)
    assert (slides["mfu_pct"], slides["hfu_pct"], slides["dp"] * slides["tp"]) == (None, 57.8, 3072)
    assert paper["mfu"] == pytest.approx(0.462, abs=5e-4)
    assert "3072" in slides["quarantine_reason"]


def test_internevo_counts_its_whole_shape(loaded: dict[str, pl.DataFrame]) -> None:
    runs = loaded["runs"].filter((pl.col("framework") == "internevo") & (pl.col("num_gpus") == 1024))
    row = runs.sort("tokens_per_s_per_gpu").row(-1, named=True)
    assert row["tokens_per_s_per_gpu"] == 3625
    assert row["params"] == pytest.approx(7.32e9, rel=1e-3)
    # 6N + 12Lhs = 47.1 GFLOPs a token, not the 42 of "7B"; 312 TFLOP/s
    assert row["mfu"] == pytest.approx(3625 * 47.15e9 / 312e12, rel=1e-3)


def test_deepseek_v3_is_marked_as_derived(loaded: dict[str, pl.DataFrame]) -> None:
    v3 = rows(loaded, "frontier_configs").filter(pl.col("source_id") == "deepseek_v3").to_dicts()[0]
    assert v3["mfu_pct"] is None
    assert v3["comparability"].startswith("derived from GPU-hours")
    assert (v3["dp"], v3["pp"], v3["ep"]) == (128, 16, 64)  # experts live inside data parallelism


def test_the_405b_layout_on_the_8b_70b_row_is_marked(loaded: dict[str, pl.DataFrame]) -> None:
    row = rows(loaded, "frontier_configs").filter(pl.col("as_printed").str.contains("Apr 2024")).to_dicts()[0]
    assert row["comparability"] == "layout belongs to another model (405B, July 2024)"


def test_sources_recompute_within_their_rounding(loaded: dict[str, pl.DataFrame]) -> None:
    # llm-foundry prints two decimals of MFU and whole tokens/s; its FP8 rows are against the FP8 peak.
    foundry = rows(loaded, "llm_foundry").select(ratio=pl.col("mfu_logged") / pl.col("mfu"))
    assert (foundry["ratio"] - 1).abs().max() < 0.01
    assert rows(loaded, "llm_foundry")["mfu"].null_count() == 0


def test_a_column_of_one_table_only_lands_in_extra(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(f"{HEADER}\nx,u,t,M 7b,8,100,42\nx,u,t,M 7b,8,100,\n")
    assert load_published(tmp_path)["published_runs"]["extra"].to_list() == ['{"my_own": "42"}', None]


def test_a_header_without_rows_is_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(HEADER + "\n")
    loaded = load_published(tmp_path)
    assert loaded["runs"].is_empty()
    assert loaded["files"]["rows_parsed"].to_list() == [0]


@pytest.mark.parametrize(
    "content", ["", f"{HEADER}\nx,u,t,M,eight,100,\n", f'{HEADER}\n"x,u\n'], ids=["empty", "word for a count", "torn"]
)
def test_a_damaged_table_names_the_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "own.csv").write_text(content)
    with pytest.raises(InputError, match=r"own\.csv"):
        load_published(tmp_path)


def test_a_directory_without_tables_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no published tables"):
        load_published(tmp_path)


def test_the_ledger_agrees_with_what_was_loaded(loaded: dict[str, pl.DataFrame]) -> None:
    ledger = published_ledger(data.PUBLISHED)
    assert_frame_equal(ledger, loaded["files"].select(ledger.columns))
