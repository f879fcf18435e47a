"""Megatron's step line, argument dumps, memory reports and endings, old and new."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.logs.logs import facts_of, run_of, settings_of, step_of, step_of_each, tables_of

NEW = (
    " [2025-02-03 04:05:06.789012] iteration       12/    5000 | consumed samples:         3072 | elapsed time per "
    "iteration (ms): 812.5 | throughput per GPU (TFLOP/s/GPU): 401.2 | learning rate: 2.500000E-05 | global batch size:"
    "   256 | lm loss: 9.125000E+00 | loss scale: 1.0 | grad norm: 3.250 | number of skipped iterations:   0 | number of"
    " nan iterations:   0 |"
)
OLD = (
    " iteration      100/  300000 | elapsed time per iteration (ms): 1500.0 | learning rate 1.500E-04 | lm loss "
    "6.500000E+00 | loss scale 65536.0 |"
)


def test_new_line() -> None:
    step = step_of("megatron", NEW)
    assert (step["step"], step["steps_planned"], step["loss"]) == (12, 5000, 9.125)
    assert (step["step_time_s"], step["tflops_per_gpu_logged"], step["grad_norm"]) == (0.8125, 401.2, 3.25)
    assert step["learning_rate"] == 2.5e-05
    assert str(step["ts"]) == "2025-02-03 04:05:06"


def test_line_of_2020_without_colons() -> None:
    step = step_of("megatron", OLD)
    assert (step["step"], step["loss"], step["step_time_s"], step["learning_rate"]) == (100, 6.5, 1.5, 1.5e-4)


@pytest.mark.parametrize("name", ["lm loss", "lm-loss", "lm_loss", "loss"])
def test_spellings_of_the_loss(name: str) -> None:
    assert step_of("megatron", NEW.replace("lm loss", name))["loss"] == 9.125


def test_other_losses_are_not_the_loss() -> None:
    line = NEW.replace("| lm loss: 9.125000E+00 ", "| load_balancing_loss: 1.000000E+00 ")
    step = step_of("megatron", line)
    assert (step["step"], step["loss"]) == (12, None)


def test_skipped_iterations_have_no_loss_and_count() -> None:
    step = step_of("megatron", NEW.replace(" lm loss: 9.125000E+00 |", ""))
    assert (step["step"], step["loss"], step["step_time_s"]) == (12, None, 0.8125)


def test_nan_loss_is_a_value() -> None:
    loss = step_of("megatron", NEW.replace("9.125000E+00", "nan"))["loss"]
    assert loss != loss  # noqa: PLR0124  # NaN is the only value that differs from itself


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "tflops", "rate"),
    [
        ("throughput per GPU (TFLOP/s/GPU): 346.3 | tokens per GPU (tokens/s/GPU): 20502.6 |", 346.3, 20502.6),
        (
            "throughput per GPU (TFLOP/s/GPU): 346.3/340.8  | tokens/s/GPU inst/harmonic mean: 20502.6/20151.0 |",
            346.3,
            20502.6,
        ),
        (
            "compute per GPU (TFLOP/s/GPU): 615.5 (avg 611.0) | tokens/s/GPU inst/harmonic mean: 11941.8/11841.8 |",
            615.5,
            11941.8,
        ),
        (
            "mem usages: 0.8131 | throughput per GPU (TFLOP/s/GPU): 57.6 | "
            "Tokens per second per GPU (Tok/s/GPU): 2645.8 |",
            57.6,
            2645.8,
        ),
        ("eta: 1:02:03 | tokens/sec/gpu: 8125.5 | throughput per GPU (TFLOP/s/GPU): 412.5 |", 412.5, 8125.5),
    ],
)
def test_throughput_as_primus_and_other_forks_label_it(fields: str, tflops: float, rate: float) -> None:
    step = step_of("megatron", NEW.replace("throughput per GPU (TFLOP/s/GPU): 401.2 |", fields))
    assert (step["tflops_per_gpu_logged"], step["tokens_per_s_per_gpu"]) == (tflops, rate)


BRIDGE = (
    "Step Time : {s}s GPU utilization: {tflops}MODEL_TFLOP/s/GPU\n"
    " [2025-12-22 15:18:3{n}] iteration        {n}/       3 | consumed samples:          512 | elapsed time per "
    "iteration (ms): {ms} | learning rate: 3.000000E-05 | global batch size:   512 | lm loss: 8.114214E+00 | loss scale: "
    "1.0 | grad norm: 0.042 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)


def test_bridges_utilisation_belongs_to_the_step_of_its_time(tmp_path: Path) -> None:
    text = (
        BRIDGE.format(n=1, s="125.37", ms="125371.0", tflops="20.9")
        + "another rank's line\n"
        + BRIDGE.format(n=2, s="6.13", ms="6125.4", tflops="426.6")
        + "Step Time : 9.99s GPU utilization: 1.0MODEL_TFLOP/s/GPU\n"
        + BRIDGE.format(n=3, s="6.23", ms="6230.0", tflops="420.6")
    )
    tables = tables_of(tmp_path, text)
    assert tables["steps"]["tflops_per_gpu_logged"].to_list() == [20.9, 426.6, 420.6]
    assert tables["rejects"].is_empty()


def test_bridges_utilisation_behind_its_step(tmp_path: Path) -> None:
    utilisation, step = BRIDGE.format(n=1, s="6.13", ms="6125.4", tflops="426.6").splitlines()
    steps = tables_of(tmp_path, f"{step}\n{utilisation}\n")["steps"]
    assert steps["tflops_per_gpu_logged"].to_list() == [426.6]


def test_primus_pairs_give_the_step_and_not_the_average() -> None:
    line = NEW.replace("812.5 |", "812.5/900.0 |").replace(
        "401.2 |", "401.2/380.0  | tokens per GPU (tokens/s/GPU): 6451.5/6000.0 |"
    )
    step = step_of("megatron", line)
    assert (step["step_time_s"], step["tflops_per_gpu_logged"], step["tokens_per_s_per_gpu"]) == (0.8125, 401.2, 6451.5)


def test_message_of_another_rank_glued_behind() -> None:
    assert step_of("megatron", NEW + " > padded vocab (size: 32000) with 0 dummy tokens")["grad_norm"] == 3.25


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["  1: ", "[default7]:", "[1,15]<stdout>:", "\x1b[32m"])
def test_launcher_prefixes(prefix: str) -> None:
    assert step_of("megatron", prefix + NEW)["step"] == 12


def test_a_cut_line_never_gives_a_wrong_value() -> None:
    whole, *cuts = step_of_each("megatron", [NEW, *(NEW[:at] for at in range(len(NEW) - 300, len(NEW), 7))])
    for cut in cuts:
        for name in ("step", "loss", "step_time_s", "tflops_per_gpu_logged", "grad_norm", "learning_rate"):
            assert cut[name] in (None, whole[name]), (cut["text"], name)


def test_a_line_cut_before_its_loss_is_no_step() -> None:
    assert step_of("megatron", NEW[: NEW.index("lm loss: 9.1") + 10])["step"] is None


def test_validation_is_no_step() -> None:
    line = " validation loss at iteration 10 | lm loss value: 9.1E+00 | lm loss PPL: 9.0E+03 |"
    assert facts_of("megatron", line).steps.is_empty()


DUMP = """\
------------------------ arguments ------------------------
  bf16 ............................................ True
  data_parallel_size .............................. 2
  expert_model_parallel_size ...................... 1
  global_batch_size ............................... 256
  group_query_attention ........................... {gqa}
  hidden_size ..................................... 4096
  micro_batch_size ................................ 2
  num_attention_heads ............................. 32
  num_layers ...................................... 32
  num_query_groups ................................ {groups}
  params_dtype .................................... torch.bfloat16
  pipeline_model_parallel_size .................... 2
  recompute_granularity ........................... {recompute}
  seq_length ...................................... 4096
  tensor_model_parallel_size ...................... 2
  untie_embeddings_and_output_weights ............. True
  use_distributed_optimizer ....................... {optimizer}
  virtual_pipeline_model_parallel_size ............ None
  world_size ...................................... 8
-------------------- end of arguments ---------------------
"""


def dump(gqa: str = "True", groups: str = "8", recompute: str = "None", optimizer: str = "True") -> str:
    return DUMP.format(gqa=gqa, groups=groups, recompute=recompute, optimizer=optimizer)


def test_key_value_heads_as_megatron_deepspeed_names_them(tmp_path: Path) -> None:
    text = dump().replace("group_query_attention ........................... True\n  ", "deepspeed ... True\n  ")
    run = run_of(tmp_path, text.replace("num_query_groups ....", "num_key_value_heads ...."))
    assert run["num_kv_heads"] == 8


def test_argument_dump(tmp_path: Path) -> None:
    run = run_of(tmp_path, dump() + NEW + "\n")
    wanted = {
        "num_gpus": 8,
        "dp": 2,
        "tp": 2,
        "pp": 2,
        "ep": 1,
        "mbs": 2,
        "gas": 64,
        "gbs": 256,
        "seq_len": 4096,
        "num_heads": 32,
        "num_kv_heads": 8,
        "num_layers": 32,
        "precision": "bf16",
        "recompute": "none",
        "zero_stage": 1,
        "tie_word_embeddings": False,
        "gated_mlp": False,
        "cp": 1,
    }
    assert {name: run.get(name) for name in wanted} == wanted
    assert "vpp" not in run


def test_groups_count_only_with_their_switch(tmp_path: Path) -> None:
    assert run_of(tmp_path, dump(gqa="False", groups="1") + NEW + "\n")["num_kv_heads"] == 32


@pytest.mark.parametrize(
    ("arguments", "precision"),
    [
        ({"bf16": "True"}, "bf16"),
        ({"bf16": "True", "fp8": "hybrid", "fp8_recipe": "delayed"}, "fp8"),
        ({"bf16": "True", "fp8": "e4m3", "fp8_recipe": "mxfp8"}, "mxfp8"),
        ({"bf16": "True", "fp8": "None", "fp8_recipe": "mxfp8"}, "bf16"),
        ({"fp16": "True", "bf16": "False"}, "fp16"),
        ({"fp16": "False", "bf16": "False"}, "fp32"),
    ],
)
def test_precision(arguments: dict[str, str], precision: str, tmp_path: Path) -> None:
    lines = "".join(f"  {name} ........ {value}\n" for name, value in arguments.items())
    lines += "  params_dtype ...... torch.float32\n"
    assert run_of(tmp_path, lines + NEW + "\n")["precision"] == precision


@pytest.mark.parametrize(
    ("arguments", "stage"),
    [
        ({"use_distributed_optimizer": "False", "zero_stage": "1.0"}, 0),
        ({"use_distributed_optimizer": "True", "zero_stage": "3"}, 1),
        (
            {
                "use_distributed_optimizer": "True",
                "use_megatron_fsdp": "True",
                "data_parallel_sharding_strategy": "optim_grads",
            },
            2,
        ),
        ({"use_distributed_optimizer": "False", "use_torch_fsdp2": "True"}, 3),
        ({"deepspeed": "True", "zero_stage": "1.0"}, 1),
        ({"deepspeed": "None", "zero_stage": "1.0"}, 0),
        ({}, 0),
    ],
)
def test_sharding(arguments: dict[str, str], stage: int, tmp_path: Path) -> None:
    lines = "".join(f"  {name} ........ {value}\n" for name, value in arguments.items())
    lines += "  params_dtype ...... torch.float16\n"
    assert run_of(tmp_path, lines + NEW + "\n")["zero_stage"] == stage


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("  recompute_granularity ...... full", "full"),
        ("  recompute_granularity ...... selective", "selective"),
        ("  recompute_granularity ...... None", "none"),
        ("  checkpoint_activations ..... True", "full"),
        ("  checkpoint_activations ..... False", "none"),
    ],
)
def test_recomputation(line: str, word: str, tmp_path: Path) -> None:
    assert run_of(tmp_path, line + "\n" + NEW + "\n")["recompute"] == word


def test_later_dump_wins_even_when_it_unsets(tmp_path: Path) -> None:
    text = """\
    _target_: megatron.bridge.training.config.ConfigContainer
      seq_length: 8192
      virtual_pipeline_model_parallel_size: 4
      micro_batch_size: 1
    _target_: megatron.bridge.training.config.ConfigContainer
      seq_length: 4096
      virtual_pipeline_model_parallel_size: null
      share_embeddings_and_output_weights: false
      bf16: true
    """
    run = run_of(tmp_path, text)
    assert (run["seq_len"], run["mbs"], run["precision"], run["tie_word_embeddings"]) == (4096, 1, "bf16", False)
    assert "vpp" not in run


def test_primus_shapes_of_the_dump() -> None:
    text = """\
    [20250814 05:36:20][rank-0/8][INFO ] [-launcher_adapter.py:56] : [MegatronLauncherAdapter] known_args[num_layers] = 32
    [20260507 13:09:31][rank-0/8][INFO]     [------module_utils.py:227] :   micro_batch_size                  : 3 (int)
    [20260507 13:09:31][rank-0/8][INFO]     [------module_utils.py:227] :   swiglu                            : True (bool)
    """
    found = settings_of("megatron", text)
    assert (found["num_layers"], found["mbs"], found["arg:swiglu"]) == ("32", "3", "True")


def test_value_with_a_prefix_of_mpirun_glued_behind() -> None:
    assert settings_of("megatron", "[1,0]<stdout>:  fp16 ......... True[1,0]<stdout>:")["arg:fp16"] == "True"


def test_experts(tmp_path: Path) -> None:
    text = """\
      ffn_hidden_size .................... 10944
      moe_ffn_hidden_size ................ 1408
      moe_layer_freq ..................... [0, 1, 1, 1]
      moe_router_topk .................... 6
      moe_shared_expert_intermediate_size  2816
      moe_shared_expert_intermediate_size ... 2816
      multi_latent_attention ............. True
      kv_lora_rank ....................... 512
      q_lora_rank ........................ None
      qk_head_dim ........................ 128
      qk_pos_emb_head_dim ................ 64
      v_head_dim ......................... 128
      num_attention_heads ................ 16
      num_experts ........................ 64
    """
    run = run_of(tmp_path, text + "\n" + NEW + "\n")
    assert (run["num_experts"], run["experts_per_token"], run["expert_ffn_hidden_size"]) == (64, 6, 1408)
    assert (run["shared_expert_ffn_hidden_size"], run["num_dense_layers"], run["kv_lora_rank"]) == (2816, 1, 512)
    assert (run["q_lora_rank"], run["qk_rope_head_dim"], run["head_dim"]) == (0, 64, 128)
    assert "num_kv_heads" not in run


def test_latent_widths_of_a_model_without_latent_attention_say_nothing(tmp_path: Path) -> None:
    text = """\
      multi_latent_attention ............. False
      kv_lora_rank ....................... 32
      q_lora_rank ........................ 512
      qk_pos_emb_head_dim ................ 64
    """
    run = run_of(tmp_path, text + "\n" + NEW + "\n")
    assert not {"kv_lora_rank", "q_lora_rank", "qk_rope_head_dim"} & set(run)


def test_world_line_whose_separator_is_missing() -> None:
    line = (
        "using world size: 8, data-parallel size: 2, context-parallel size: 1, hierarchical context-parallel sizes: "
        "Nonetensor-model-parallel size: 4, encoder-tensor-model-parallel size: 0, pipeline-model-parallel size: 1, "
        "encoder-pipeline-model-parallel size: 0"
    )
    found = settings_of("megatron", line)
    assert {name: found[name] for name in ("num_gpus", "dp", "cp", "tp", "pp")} == {
        "num_gpus": "8",
        "dp": "2",
        "cp": "1",
        "tp": "4",
        "pp": "1",
    }


def test_world_line_of_2021() -> None:
    line = (
        "using world size: 64, data-parallel-size: 1, tensor-model-parallel size: 4, pipeline-model-parallel size: 16 "
    )
    found = settings_of("megatron", line)
    assert (found["num_gpus"], found["dp"], found["tp"], found["pp"]) == ("64", "1", "4", "16")


@pytest.mark.parametrize("spelling", ["micro-batches", "microbatches"])
def test_micro_batches(spelling: str) -> None:
    assert settings_of("megatron", f"setting number of {spelling} to constant 4")["gas"] == "4"


def test_unpadded_vocabulary_is_better_than_the_padded_one(tmp_path: Path) -> None:
    text = "  padded_vocab_size ....... 50304\n > padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)\n"
    tables = tables_of(tmp_path, text + NEW + "\n")
    assert tables["runs"]["vocab_size"].to_list() == [50257]
    assert "config_conflict" not in tables["events"]["kind"].to_list()


def test_parameters_of_an_unsplit_model(tmp_path: Path) -> None:
    line = " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 8030261248\n"
    sizes = "  tensor_model_parallel_size ... 1\n  pipeline_model_parallel_size ... {}\n"
    assert run_of(tmp_path, sizes.format(1) + line + NEW + "\n")["params"] == 8030261248
    assert "params" not in run_of(tmp_path, sizes.format(2) + line + NEW + "\n")


def test_options_of_an_echoed_command() -> None:
    line = "+ torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --tensor-model-parallel-size 4 --seq-length=2048 --bf16"
    found = facts_of("megatron", line).settings
    assert set(found["setting_source"]) == {"command_line"}
    assert dict(found.select("name", "value").iter_rows()) == {
        "tp": "4",
        "seq_len": "2048",
        "gpus_per_node": "8",
        "num_nodes": "2",
    }


def test_the_last_batch_of_a_ramp_up_counts(tmp_path: Path) -> None:
    lines = [
        NEW.replace("   256 |", f"   {size} |").replace("iteration       12/", f"iteration       1{place}/")
        for place, size in enumerate((128, 128, 256, 256))
    ]
    assert run_of(tmp_path, "\n".join(lines))["gbs"] == 256


def test_memory_reports_glued_into_one_line() -> None:
    report = "[Rank {}] (after 1 iterations) memory (MB) | allocated: 5.0 | max allocated: {} | reserved: 7.0 | max reserved: 8.0"
    peaks = facts_of("megatron", report.format(0, "6.0") + report.format(1, "6.5")).peaks
    allocated = peaks.filter(name="mem_peak_allocated_bytes")["value"].to_list()
    assert allocated == [6.0 * 2**20, 6.5 * 2**20]
    assert peaks.filter(name="mem_peak_reserved_bytes").height == 2


def test_memory_as_bridge_reports_it_since_2026() -> None:
    line = (
        "[Rank 0] (after 2 iterations) memory (GB) | mem-allocated-gigabytes: 5.5 | mem-reserved-gigabytes: 9.5 | "
        "mem-max-allocated-gigabytes: 8.25 | mem-max-reserved-gigabytes: 9.75 | mem-alloc-retires: 0"
    )
    peaks = facts_of("megatron", line).peaks.select("name", "value").rows()
    assert sorted(peaks) == [("mem_peak_allocated_bytes", 8.25e9), ("mem_peak_reserved_bytes", 9.75e9)]


def test_two_runs_in_one_file(tmp_path: Path) -> None:
    second = NEW.replace("iteration       12", "iteration       13")
    text = (
        dump()
        + NEW
        + "\n+ torchrun pretrain_gpt.py --train-iters 9\n"
        + dump(recompute="full")
        + second
        + "\n"
        + dump()
    )
    tables = tables_of(tmp_path, text)
    runs = tables["runs"]
    assert runs["attempt"].to_list() == [1, 2, 3]
    assert runs["steps_logged"].to_list() == [1, 1, None]
    assert runs["recompute"].to_list() == ["none", "full", "none"]


@pytest.mark.parametrize(
    "line",
    [
        "[after training is done] datetime: 2025-01-01 00:00:00 ",
        "Training completed.",
        "exiting program at iteration 100",
    ],
)
def test_the_trainer_says_that_it_is_done(line: str, tmp_path: Path) -> None:
    assert run_of(tmp_path, NEW + "\n" + line + "\n")["status"] == "completed"


def test_the_batch_and_the_two_sizes_of_2019(tmp_path: Path) -> None:
    text = """\
        using world size: 16 and model-parallel size: 2
        -------------------- arguments --------------------
          batch_size ...................... 8
          seq_length ...................... 1024
        ---------------- end of arguments ----------------
         iteration      100/  320000 | elapsed time per iteration (ms): 450.1 | learning rate 1.5E-05 | lm loss 8.25E+00 | \
loss scale 65536.0 |
    """
    run = run_of(tmp_path, text)
    assert (run["num_gpus"], run["tp"], run["pp"], run["dp"], run["mbs"]) == (16, 2, 1, 8, 8)


def test_the_old_batch_of_later_versions_has_no_value() -> None:
    assert "mbs" not in settings_of("megatron", "  batch_size ...................... None\n")


@pytest.mark.parametrize(
    "line",
    [
        "  num_workers ..................................... 2\n",
        "known_args[num_workers] = 2\n",
        "torchrun pretrain_gpt.py --num-workers 2 --micro-batch-size 1\n",
    ],
)
def test_workers_that_load_data(line: str) -> None:
    assert settings_of("megatron", line + NEW + "\n")["data_workers"] == "2"
