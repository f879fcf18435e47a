"""Arguments under their own names, in each form in which trainers print them."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.logs.evidence import arguments
from sweepscope.pipeline.logs.runs.settings import MOST_ARGUMENTS
from sweepscope.pipeline.text import lines
from tests.pipeline.ingest_in_memory import tables_of
from tests.pipeline.logs.evidence.test_jobs import steps

TABLE = "------------------------ arguments ------------------------\n" + "".join(
    f"  {name} {'.' * (48 - len(name))} {value}\n"
    for name, value in {
        "adam_beta1": "0.9",
        "overlap_grad_reduce": "True",
        "save": "None",
        "data_path": "['a', 'b c']",
    }.items()
)


def found_in(text: str, *, cuts: tuple[int, ...] = ()) -> dict[str, str]:
    rows = text.splitlines(keepends=True)
    ends = [*sorted(cuts), len(rows)]
    parts, begin = [], 0
    for end in ends:
        if end > begin:
            block = lines.split(0, "".join(rows[begin:end]).encode(), begin + 1)
            parts.append(cleaning.clean(arguments.lines_of(block)).select(arguments.ARGUMENT_LINES.names()))
            begin = end
    found = arguments.read_arguments(pl.concat(parts)) if parts else pl.DataFrame()
    return dict(found.select("name", "value").iter_rows()) if len(found) else {}


def test_a_table_with_dots() -> None:
    assert found_in(TABLE) == {
        "adam_beta1": "0.9",
        "overlap_grad_reduce": "True",
        "save": "None",
        "data_path": "['a', 'b c']",
    }
    deepspeed = "[2025-01-01 00:00:00,123] [INFO] [config.py:1001:print]   gradient_clipping ............ 1.0\n"
    assert found_in(deepspeed) == {"gradient_clipping": "1.0"}
    assert found_in("  adam_eps ........................1e-08.......................default\n") == {"adam_eps": "1e-08"}


@pytest.mark.parametrize(
    "text",
    ["Loading model ... done\n", "compiling ...\n", "model-and-optimizer-setup ........................: (1, 2)\n"],
)
def test_dots_of_other_lines(text: str) -> None:
    assert found_in(text) == {}


def test_a_repr_on_one_line() -> None:
    assert found_in("args: Namespace(lr=1e-4, name='a, b', shape=(1, 2), nothing=None)\n") == {
        "lr": "1e-4",
        "name": "a, b",
        "shape": "(1, 2)",
        "nothing": "None",
    }
    setup = "INFO: setting up DistributedDataParallelConfig(overlap_grad_reduce=True, bucket_size=40000000)\n"
    assert found_in(setup) == {
        "DistributedDataParallelConfig.overlap_grad_reduce": "True",
        "DistributedDataParallelConfig.bucket_size": "40000000",
    }
    assert found_in("model = GPT(GPTConfig(n_layer=12, n_head=12))\n") == {}, "source code"


def test_a_repr_over_many_lines_with_a_logger_before_each() -> None:
    text = """Config(general=GeneralArgs(project='tp',
                           seed=6),
       parallelism=ParallelismArgs(dp=1,
                                   tp_mode=<TensorParallelLinearMode.REDUCE_SCATTER: 2>,
                                   rope={'factor': 8.0,
                                         'type': 'llama3'}),
       tokens=TokensArgs(train_steps=10))
"""
    logged = "".join(f"01/27/2025 15:49:39 [INFO|DP=0|PP=0|TP=0]: {row}" for row in text.splitlines(keepends=True))
    expected = {
        "general.project": "tp",
        "general.seed": "6",
        "parallelism.dp": "1",
        "parallelism.tp_mode": "REDUCE_SCATTER",
        "parallelism.rope": "{'factor': 8.0, 'type': 'llama3'}",
        "tokens.train_steps": "10",
    }
    assert found_in(logged) == found_in(text) == expected
    assert found_in("TrainingArguments(\n_n_gpu=1,\nlearning_rate=5e-05,\noptim='adamw_torch',\n)\n") == {
        "_n_gpu": "1",
        "learning_rate": "5e-05",
        "optim": "adamw_torch",
    }


def test_json_and_dicts_behind_a_word() -> None:
    node = {"training": {"steps": 10, "compile": True}, "seed": None, "results": [{"a": 1}]}
    expected = {"training.steps": "10", "training.compile": "True", "seed": "None"}
    assert found_in(f"Running with args: {json.dumps(node)}\n") == expected
    assert found_in(f"config: {node}\n") == expected
    assert found_in("{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n" * 20) == {}


def test_a_block_of_names_and_values() -> None:
    names = [f"field_{letter}" for letter in "abcdefgh"]
    text = (
        "model:\n" + "".join(f"  {name}: {index}\n" for index, name in enumerate(names)) + "  nested:\n    deep: 'x'\n"
    )
    assert found_in(text) == {**{f"model.{n}": str(i) for i, n in enumerate(names)}, "model.nested.deep": "x"}
    assert found_in("".join(f"{name}: 1\n" for name in names[:5])) == {}, "too few for a configuration"
    assert found_in("".join(f"node7: [{index}] NCCL INFO\n" for index in range(30))) == {}, "a host before each line"
    metrics = "".join(f"{name}: 1\n" for name in [*names, "train_loss"])
    assert found_in(metrics) == {}, "figures of a step"


def test_a_command_line() -> None:
    command = "torchrun --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2 --bf16 --lr=1e-4 \n"
    assert found_in(command) == {"tensor_model_parallel_size": "2", "bf16": "True", "lr": "1e-4"}
    assert found_in("  File train.py, line 3, in <module>\n") == {}


def test_a_command_line_of_a_module() -> None:
    command = "+ torchrun --nproc_per_node=8 --tee 3 -m torchtitan.train --module qwen3 --compile.enable --training.steps=10\n"
    assert found_in(command) == {"module": "qwen3", "compile.enable": "True", "training.steps": "10"}
    assert found_in("python3 -m MaxText.train MaxText/configs/base.yml run_name=a steps=5\n") == {
        "run_name": "a",
        "steps": "5",
    }
    assert found_in("python -m pip install --upgrade pip\n") == {}, "no module of a package"
    script = "python -m torch.distributed.run --nproc_per_node 8 train.py --lr 1\n"
    assert found_in(script) == {"lr": "1"}


@pytest.mark.parametrize(
    ("line", "is_compiled"),
    [
        ("[titan] 2026-05-20 03:18:16,595 - root - INFO - Compiling each TransformerBlock with torch.compile", True),
        ("compiling the model... (takes a ~minute)", True),
        ("[titan] 2026-05-20 03:18:16,530 - root - INFO - Compiling the loss function with torch.compile", False),
        ("Running PyTorch 2.9.0 compiled for CUDA 12.6", False),
    ],
)
def test_a_line_that_says_that_layers_are_compiled(line: str, *, is_compiled: bool) -> None:
    assert found_in(f"{line}\n") == ({"torch_compile": "True"} if is_compiled else {})


@given(st.lists(st.integers(0, 60), max_size=4))
def test_it_does_not_matter_where_the_text_is_cut(cuts: list[int]) -> None:
    names = [f"field_{letter}" for letter in "abcdefgh"]
    text = (
        TABLE
        + "".join(f"{name}: 1\n" for name in names)
        + "TrainingArguments(\n_n_gpu=1,\nlr=5e-05,\n)\n"
        + "python train.py --a 1\n"
    )
    assert found_in(text, cuts=tuple(cuts)) == found_in(text)


def test_one_copy_per_run_whatever_ranks_print() -> None:
    ranks = "".join(f"{rank}: {row}" for row in TABLE.splitlines(keepends=True) for rank in range(4))
    table = tables_of({"train.log": ranks + steps(1, 5)})["arguments"]
    assert table["name"].to_list() == ["adam_beta1", "data_path", "overlap_grad_reduce", "save"]
    assert table["run_id"].n_unique() == 1
    assert set(table["setting_source"]) == {"argument_dump"}
    assert table["source_path"].unique().to_list() == ["train.log"]


def test_a_log_and_a_file_beside_it_the_log_counts_more() -> None:
    config = json.dumps({"distributed": {"dp_size": 2}, "training": {"seed": 1}, "dataset": {"name": "x"}, "model": {}})
    files = {"run/train.log": "dataset.name: y\n" + steps(1, 5), "run/config.json": config}
    rows = tables_of(files)["arguments"]
    assert dict(rows.select("name", "value").iter_rows())["distributed.dp_size"] == "2"
    assert set(rows["source_path"]) == {"run/config.json"}
    assert set(rows["setting_source"]) == {"config_file"}


def test_an_attempt_that_prints_none_has_those_before_it() -> None:
    restarted = TABLE + steps(1, 5) + "SLURM_JOB_ID=2\n" + steps(3, 9)
    table = tables_of({"train.log": "SLURM_JOB_ID=1\n" + restarted})["arguments"]
    assert table.group_by("run_id").len()["len"].to_list() == [4, 4]


def test_more_arguments_than_a_run_may_have() -> None:
    text = "".join(f"  name_{index:05d} ............................ {index}\n" for index in range(5_000))
    rows = tables_of({"train.log": text + steps(1, 5)})["arguments"]
    assert 0 < rows.height <= MOST_ARGUMENTS


def test_credentials_are_hidden() -> None:
    key = "hf_" + "aB3" * 12
    text = (
        TABLE
        + f"  hf_token ........................................ {key}\n"
        + f"python train.py --wandb-key {'0f' * 20}\n"
    )
    table = tables_of({"train.log": text + steps(1, 5)})["arguments"]
    assert not table.filter(pl.col("value").str.contains(key) | pl.col("value").str.contains("0f0f0f")).height
