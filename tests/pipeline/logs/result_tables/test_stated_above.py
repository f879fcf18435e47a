"""What a document states of all runs of its tables."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.logs.result_tables.read import read_document, read_text

TABLE = """
| run | tp | pp | dp | mbs | tokens/s/GPU | MFU (%) |
|---|---|---|---|---|---|---|
| a | 1 | 2 | 8 | 1 | 9100 | 45.1 |
| b | 2 | 2 | 4 | 2 | 8700 | 43.2 |
"""
ABOVE = "# Sweep on 2 nodes\n\nAll runs: **global batch size** 256, sequence length 8192.\n\n- Model: Llama-3-8B\n"


def test_facts_above_a_table_hold_for_all_of_its_runs() -> None:
    found = read_document(ABOVE + TABLE)
    assert found is not None
    runs = found.runs
    assert runs["seq_len"].to_list() == [8192, 8192]
    assert runs["gbs"].to_list() == [256, 256]
    assert runs["num_nodes"].to_list() == [2, 2]
    assert [line for name, line in found.columns.select("column_name", "line_no").rows() if name == "seq_len"] == [3]
    assert {name.lower() for name in runs["model"].to_list()} == {"llama-3-8b"}


def test_a_cell_counts_more_and_values_that_differ_are_left_out() -> None:
    table = TABLE.replace("| run |", "| seq_len |").replace("| a |", "| 4096 |").replace("| b |", "| 2048 |")
    found = read_document(ABOVE + table)
    assert found is not None
    assert found.runs["seq_len"].to_list() == [4096, 2048]
    two = read_document("Sequence length: 4096\n\nSequence length: 8192\n" + TABLE)
    assert two is not None
    assert two.runs["seq_len"].to_list() == [None, None]


def test_commands_code_and_what_follows_a_table_state_nothing_of_it() -> None:
    code = "Run it:\n\n```\nsequence length: 2048\n```\n\n    seq_len = 512\n\npass --seq-length 1024\n$ seq_len = 8\n"
    found = read_document(code + TABLE + "\nsequence length: 8192\n")
    assert found is not None
    assert found.runs["seq_len"].to_list() == [None, None]


def test_a_log_above_a_table_is_no_document() -> None:
    found = read_text(ABOVE + TABLE)
    assert found is not None
    assert found.runs["seq_len"].to_list() == [None, None]


@pytest.mark.parametrize(
    "sentence",
    [
        "All runs use 2 nodes of 8x H100 with bf16 and a sequence length of 8192.",
        "We ran on 2 nodes with 8 H100 each (sequence length 8,192).",
        "Hardware: 2 nodes (8x H100), context length 8192",
    ],
)
def test_nodes_of_cards_hold_for_all_runs(sentence: str) -> None:
    table = (
        "| config | TP | micro batch | step time (s) |\n|:--|--:|--:|--:|\n| a | 1 | 1 | 4.21 |\n| b | 2 | 2 | 5.02 |\n"
    )
    found = read_document(f"# Results\n\n{sentence}\n\n{table}")
    assert found is not None
    assert (
        found.runs.select("num_nodes", "gpus_per_node", "accelerator", "seq_len").rows() == [(2, 8, "H100", 8192)] * 2
    )


def test_a_heading_states_the_model_the_cards_and_the_length() -> None:
    found = read_document("# Llama-3 70B on 8 nodes of H100 (80GB SXM), seq 8192, global batch 1024\n" + TABLE)
    assert found is not None
    (run, _) = found.runs.to_dicts()
    assert (run["model"], run["accelerator"], run["num_nodes"]) == ("Llama 3 70B", "H100-SXM-80GB", 8)
    assert (run["seq_len"], run["gbs"]) == (8192, 1024)


def test_the_nearest_heading_names_the_model_of_a_table() -> None:
    found = read_document(f"# Results 2026\n\n## Llama 3 8B\n{TABLE}\n## Qwen2.5-7B\n{TABLE}")
    assert found is not None
    assert found.runs["model"].to_list() == ["Llama 3 8B"] * 2 + ["Qwen2.5 7B"] * 2
