"""torchtitan's options of 0.3: both spellings of an option, the choice of a class, and texts that are others'."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.logs.dialects.torchtitan.launch_files import read_options

OPTIONS = """--module=llama3 --config=llama3_70b
--training.local_batch_size=2 --training.global_batch_size=512
--parallelism.tensor_parallel_degree=8
--parallelism.data_parallel_shard_degree=-1
activation-checkpoint:selective
"""


def test_options_state_columns() -> None:
    assert read_options(OPTIONS) == {
        "mbs": "2",
        "gbs": "512",
        "tp": "8",
        "recompute": "selective",
        "arg:model": "llama3",
        "arg:flavor": "70B",
    }


def test_hyphens_and_values_as_words_are_alike() -> None:
    spelt = OPTIONS.replace("=", " ").replace("local_batch_size", "local-batch-size").replace("tensor_p", "tensor-p")
    assert read_options(spelt) == read_options(OPTIONS)


def test_a_switch_has_no_value_of_the_next_option() -> None:
    found = read_options("--training.disable_cuda_graphs --training.seq_len 8192 # a comment --training.steps=3")
    assert found == {"seq_len": "8192"}


def test_a_configuration_of_another_name_is_no_model() -> None:
    assert read_options("--module=mine --config=tiny --training.steps=10") == {"steps_planned": "10"}


@pytest.mark.parametrize("text", ["", "--lr=0.1 --tensor_parallel_degree=2", "'unfinished"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no option of torchtitan|no words of a command line"):
        read_options(text)
