"""Tables in, tables out: what is estimated, what is assumed, and what is refused and why."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.estimate.calibration.published_tables import published_table
from sweepscope.pipeline.estimate.physics.memory import Memory
from sweepscope.pipeline.estimate.physics.step_time import StepTime
from sweepscope.pipeline.estimate.rows.asking import OK
from sweepscope.pipeline.estimate.rows.estimate_rows import PREDICTED, estimate_frame


def row(**changes: Any) -> dict[str, Any]:
    """A complete row in the columns of the reference tables, as text cells."""
    base: dict[str, Any] = {
        "source_id": "mine",
        "model": "my model",
        "num_layers": 32,
        "hidden_size": 4096,
        "num_heads": 32,
        "num_kv_heads": 32,
        "ffn_hidden_size": 11008,
        "vocab_size": 32000,
        "gated_mlp": "true",
        "tie_word_embeddings": "false",
        "seq_len": 4096,
        "num_gpus": 8,
        "gpus_per_node": 8,
        "accelerator": "H100-SXM-80GB",
        "dp": 4,
        "tp": 2,
        "pp": 1,
        "cp": 1,
        "grad_accum": 16,
        "micro_batch_size": 2,
        "zero_stage_or_fsdp": "zero1",
        "recompute": "none",
        "sequence_parallel": "true",
        "precision": "bf16",
        "execution": "graphs",
        "loss_parallel": "true",
        "master_precision": "fp32",
        "software_year": 2024.5,
    }
    return {**base, **changes}


def predict(*rows: dict[str, Any]) -> pl.DataFrame:
    texts = [{k: None if v is None else str(v) for k, v in entry.items()} for entry in rows]
    return estimate_frame(pl.DataFrame(texts, infer_schema_length=None))


def test_a_complete_row_is_estimated_without_assumptions() -> None:
    got = predict(row()).row(0, named=True)
    assert got["est_status"] == OK
    assert got["est_assumptions"] is None
    assert 0.2 < got["est_mfu"] < 0.75
    assert got["est_fits"] is True
    assert got["est_tokens_per_s_per_gpu"] * got["est_step_time_s"] * 8 == pytest.approx(4 * 16 * 2 * 4096)


MOE = {
    **{"num_experts": 64, "experts_per_token": 8, "expert_ffn_hidden_size": 2048, "num_dense_layers": 0},
    **{"num_gpus": 64, "dp": 64, "ep": 64, "tp": 1, "grad_accum": 4},
}


def test_hosts_of_a_rack_do_not_cut_its_links() -> None:
    # An NVL72 rack has 18 hosts of four: the experts' exchange stays on NVLink, whatever a host holds.
    hosts, rack, cut = (
        predict(row(accelerator="GB200", **MOE, **facts)).row(0, named=True)
        for facts in ({"gpus_per_node": 4}, {"gpus_per_node": 72}, {"gpus_per_node": 4, "gpus_per_domain": 4})
    )
    assert hosts["est_time_ep_s"] == rack["est_time_ep_s"]
    assert hosts["est_time_ep_s"] < cut["est_time_ep_s"] / 4
    assert hosts["est_assumptions"] == "shared_expert_ffn_hidden_size = 0; links join 72 accelerators"
    assert "a network of 400 Gb/s per accelerator" in cut["est_assumptions"]


def test_a_network_is_stated_per_accelerator_or_by_its_cards() -> None:
    over = {"num_gpus": 64, "dp": 32, "zero_stage_or_fsdp": "zero3"}
    usual, fast, cards, slow = (
        predict(row(**over, **facts)).row(0, named=True)
        for facts in (
            {},
            {"network_gbit_per_s": "400"},
            {"nics_per_node": "8", "nic_gbit_per_s": "400"},
            {"network_gbit_per_s": "12.5"},
        )
    )
    assert usual["est_step_time_s"] == fast["est_step_time_s"] == cards["est_step_time_s"]
    assert slow["est_time_dp_s"] > 4 * usual["est_time_dp_s"]
    assert usual["est_assumptions"] == "a network of 400 Gb/s per accelerator"
    assert fast["est_assumptions"] is cards["est_assumptions"] is None
    wrong = predict(row(**over, network_gbit_per_s="-1"))["est_status"][0]
    assert wrong == "not understood: network_gbit_per_s = -1"


def test_a_sharding_that_is_not_stated_is_the_commonest_of_the_framework() -> None:
    open_ = {"zero_stage_or_fsdp": None}
    got = predict(row(**open_), row(**open_, framework="torchtitan"), row(zero_stage_or_fsdp="zero1"))
    assert got["est_status"].to_list() == [OK] * 3
    assert got["est_assumptions"].to_list() == ["ZeRO-1", "ZeRO-3", None]
    assert got["est_mem_optimizer_bytes"][0] == got["est_mem_optimizer_bytes"][2]
    alone = predict(row(**open_, num_gpus=2, dp=1))
    assert alone["est_assumptions"][0] is None


def test_a_precision_that_is_none_of_ours_is_taken_as_the_card_s_usual() -> None:
    eight, four, open_, old = predict(
        row(precision="fp8"),
        row(precision="nvfp4"),
        row(precision="fp8 or nvfp4 (see config)"),
        row(precision="not stated (8-bit and lower are allowed)", accelerator="A100", attention_kernel="flash-2"),
    ).iter_rows(named=True)
    assert eight["est_assumptions"] is None
    assert four["est_step_time_s"] == open_["est_step_time_s"] == eight["est_step_time_s"]
    assert four["est_assumptions"] == "FP4 estimated as FP8, for H100-SXM-80GB has none"
    assert open_["est_assumptions"] == "precision that is not stated plainly, estimated as FP8"
    assert old["est_assumptions"] == "precision that is not stated plainly, estimated as 16 bit"


def test_that_no_layer_stays_in_16_bit_beside_fp4_is_assumed_unless_stated() -> None:
    open_, some, none = predict(
        *(row(precision="nvfp4", accelerator="GB300", bf16_layers=kept) for kept in (None, "8", "0"))
    ).iter_rows(named=True)
    note = "products of all layers in FP4"
    assert [note in (got["est_assumptions"] or "") for got in (open_, some, none)] == [True, False, False]
    assert open_["est_step_time_s"] == none["est_step_time_s"] < some["est_step_time_s"]


def test_rows_of_mlperf_that_state_a_layout_are_estimated() -> None:
    table = published_table("mlperf_training")
    got = estimate_frame(table)
    assert (got["est_status"] == OK).to_list() == table["micro_batch_size"].is_not_null().to_list()


def test_the_breakdown_adds_up() -> None:
    got = predict(row()).row(0, named=True)
    memory = sum(got[f"est_mem_{part.name}_bytes"] for part in fields(Memory))
    assert memory == pytest.approx(got["est_mem_bytes"])
    assert sum(got[f"est_time_{part.name}_s"] for part in fields(StepTime)) == pytest.approx(got["est_step_time_s"])


def test_rows_and_other_columns_stay_as_they_were() -> None:
    given = pl.DataFrame(
        [row(mine="a"), row(mine="b", num_heads=30), row(mine="c")], schema_overrides={"mine": pl.String}
    )
    got = estimate_frame(given)
    assert got.select(given.columns).equals(given)
    assert got.columns == [*given.columns, *PREDICTED]
    assert [status == OK for status in got["est_status"]] == [True, False, True]


def test_estimating_twice_changes_nothing() -> None:
    once = predict(row(), row(dp=2, grad_accum=32, tp=4))
    assert estimate_frame(once).equals(once)


def test_runs_of_llm_foundry_that_completed_are_said_to_fit() -> None:
    # Their micro-batches were raised until the card was full; MPT-30b at 8k on eight cards is said to miss by 1 %.
    assert estimate_frame(published_table("llm_foundry"))["est_fits"].sum() >= 143


def test_an_empty_table_stays_empty() -> None:
    got = estimate_frame(pl.DataFrame([row()]).clear())
    assert got.height == 0
    assert set(PREDICTED) <= set(got.columns)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"accelerator": "Cerebras WSE"}, "unknown accelerator: Cerebras WSE"),
        ({"accelerator": None}, "accelerator not stated"),
        ({"num_heads": None}, "shape unknown: num_heads"),
        ({"gated_mlp": None}, "gated_mlp not stated"),
        ({"seq_len": None}, "sequence length not stated"),
        ({"micro_batch_size": None}, "layout incomplete: mbs"),
        ({"num_gpus": 16}, "layout needs 8 accelerators, the row has 16"),
        ({"tp": 1, "pp": 2, "num_layers": 1}, "cannot be launched: more pipeline stages than layers"),
        ({"num_heads": 33, "num_kv_heads": 33, "hidden_size": 33 * 128}, "attention heads are not divisible by tp"),
        ({"num_experts": 8, "experts_per_token": 2}, "shape unknown: expert_ffn_hidden_size"),
        ({"recompute": "every other month"}, "recomputation not understood: every other month"),
        ({"accelerator": "CPU (2 x EPYC)"}, "CPU (2 x EPYC) is no accelerator: only GPUs and TPUs are modelled"),
        ({"micro_batch_size": -1}, "not understood: mbs = -1"),
        ({"micro_batch_size": "two"}, "not understood: mbs = two"),
        ({"grad_accum": 1.5}, "not understood: gas = 1.5"),
        ({"num_gpus": 0}, "not understood: num_gpus = 0"),
        ({"zero_stage_or_fsdp": "zero9"}, "not understood: zero_stage = zero9"),
        ({"zero_stage_or_fsdp": 7}, "not understood: zero_stage = 7"),
        ({"hidden_size": -5}, "not understood: hidden_size = -5"),
        ({"total_params_b": "some"}, "not understood: total_params_b = some"),
        ({"total_params_b": -7}, "not understood: total_params_b = -7"),
        ({"seq_len": float("inf")}, "not understood: seq_len = inf"),
    ],
)
def test_a_row_that_cannot_be_estimated_says_why(change: dict[str, Any], reason: str) -> None:
    got = predict(row(**change)).row(0, named=True)
    assert reason in got["est_status"]
    assert got["est_step_time_s"] is None
    assert got["est_mem_bytes"] is None


def test_a_table_of_text_is_read_as_one_of_numbers() -> None:
    text = {key: None if value is None else str(value) for key, value in row().items()}
    predicted = predict(text).row(0, named=True)
    assert predicted["est_status"] == OK
    assert predicted["est_step_time_s"] == pytest.approx(predict(row())["est_step_time_s"][0])
    for missing in ("", "NaN", "n/a", "-"):
        assert predict({**text, "vpp": missing})["est_status"].to_list() == [OK]


def test_a_gate_is_told_by_the_stated_size() -> None:
    # 6.74B fits the gated, untied shape only
    got = predict(row(gated_mlp=None, tie_word_embeddings=None, total_params_b=6.74)).row(0, named=True)
    assert got["est_status"] == OK
    assert "gated_mlp=true, tie_word_embeddings=false from the stated parameters" in got["est_assumptions"]


def test_the_usual_width_is_told_by_the_stated_parameters_alone() -> None:
    plain = row(ffn_hidden_size=None, gated_mlp=None, total_params_b=6.7, tie_word_embeddings="false")
    rows = predict(plain, {**plain, "total_params_b": 8.0}, {**plain, "total_params_b": None}).to_dicts()
    assert rows[0]["est_status"] == OK
    assert "ffn_hidden_size = 4 x hidden_size, not gated, from the stated parameters" in rows[0]["est_assumptions"]
    assert [entry["est_status"][:43] for entry in rows[1:]] == ["shape unknown: ffn_hidden_size not stated, "[:43]] * 2
    written_out = predict(row(ffn_hidden_size=16384, gated_mlp="false"))["est_step_time_s"].item()
    assert rows[0]["est_step_time_s"] == pytest.approx(written_out)


def test_a_width_is_told_by_counted_parameters_and_not_by_rounded_ones() -> None:
    gated = row(ffn_hidden_size=None, gated_mlp="true", tie_word_embeddings="false", num_kv_heads=None)
    exact = {**gated, "total_params_b": 6.738_812_928}  # Llama 2 7B's 6,738,415,616 and biases
    rows = predict(exact, {**gated, "total_params_b": 6.74}, {**exact, "tie_word_embeddings": None}).to_dicts()
    assert rows[0]["est_status"] == OK
    assert "ffn_hidden_size = 11008 from the stated parameters" in rows[0]["est_assumptions"]
    assert [entry["est_status"][:43] for entry in rows[1:]] == ["shape unknown: ffn_hidden_size not stated, "[:43]] * 2


def test_a_known_model_fills_its_shape_and_says_so() -> None:
    shape = ("num_layers", "hidden_size", "num_heads", "num_kv_heads", "ffn_hidden_size", "vocab_size")
    bare = dict.fromkeys((*shape, "gated_mlp", "tie_word_embeddings"))
    got = predict(row(**bare, model="Llama-3.1 8B"), row(**bare, model="unheard of 8B"))
    assert got["est_status"][0] == OK
    assert "of Llama 3 8B" in got["est_assumptions"][0]
    assert got["est_status"][1].startswith("shape unknown")


def test_experts_counted_outside_of_dp_are_folded_into_it() -> None:
    moe = {
        "num_experts": 8,
        "experts_per_token": 2,
        "expert_ffn_hidden_size": 2048,
        "shared_expert_ffn_hidden_size": 0,
        "num_dense_layers": 0,
        "tp": 1,
    }
    inside = row(**moe, dp=8, ep=4, grad_accum=16)
    outside = row(**moe, dp=2, ep=4, grad_accum=16)
    got = predict(inside, outside)
    assert got["est_status"].to_list() == [OK, OK]
    assert got["est_step_time_s"][0] == got["est_step_time_s"][1]


def test_words_of_other_tables_are_understood() -> None:
    plain = row(recompute="full", zero_stage_or_fsdp="zero1", pp=2, dp=2, pipeline_schedule="gpipe")
    other = row(
        recompute="every_layer", zero_stage_or_fsdp="distributed optimizer", pp=2, dp=2, pipeline_schedule="AFAB"
    )
    got = predict(plain, other)
    assert got["est_status"].to_list() == [OK, OK]
    assert got["est_mem_bytes"][0] == got["est_mem_bytes"][1]
    assert got["est_step_time_s"][0] == got["est_step_time_s"][1]


def test_a_row_that_ran_with_uneven_chunks_is_estimated() -> None:
    got = predict(row(pp=2, dp=2, vpp=3, grad_accum=3))
    assert got["est_status"].to_list() == [OK]


def test_groups_of_sharding_are_read_in_every_spelling() -> None:
    wide = {"dp": 16, "tp": 1, "num_gpus": 16, "grad_accum": 4}
    stated = predict(
        row(**wide, dp_replicate=2),
        row(**wide, dp_shard=8),
        row(**{**wide, "zero_stage_or_fsdp": "zero1 within groups of 8"}),
        row(**wide),
    )
    assert stated["est_status"].to_list() == [OK] * 4
    grouped, whole = stated["est_mem_optimizer_bytes"][:3], stated["est_mem_optimizer_bytes"][3]
    assert grouped.to_list() == pytest.approx([2 * whole] * 3)  # 8 ranks share what 16 did
    hybrid = predict(row(**{**wide, "zero_stage_or_fsdp": "HSDP"}), row(**{**wide, "zero_stage_or_fsdp": "FSDP"}))
    assert hybrid["est_mem_optimizer_bytes"][0] == pytest.approx(2 * hybrid["est_mem_optimizer_bytes"][1])
    assert hybrid["est_assumptions"].to_list() == [
        "states sharded within each node; a network of 400 Gb/s per accelerator",
        "a network of 400 Gb/s per accelerator",
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"dp_shard": 3}, "dp is no multiple of the ranks that share one copy"),
        ({"dp_replicate": 3}, "replicas of sharded states do not divide dp x cp"),
        ({"pp": 3, "dp": 4, "tp": 1, "num_gpus": 12, "pipeline_schedule": "DualPipe"}, "DualPipe needs twice as many"),
    ],
)
def test_groups_and_schedules_that_cannot_be_are_refused(change: dict[str, Any], reason: str) -> None:
    assert reason in predict(row(**change))["est_status"][0]


def test_schedules_are_read_as_frameworks_spell_them() -> None:
    spelt = ("1F1B", "ScheduleInterleavedZeroBubble", "ZBVZeroBubble", "zb-v", "DualPipe", "DualPipeV", "GPipe")
    got = predict(*(row(dp=1, tp=1, pp=8, pipeline_schedule=word) for word in spelt))
    bubble = dict(zip(spelt, got["est_time_bubble_s"], strict=True))
    assert bubble["ZBVZeroBubble"] == bubble["zb-v"] < bubble["ScheduleInterleavedZeroBubble"] < bubble["1F1B"]
    assert bubble["GPipe"] == bubble["1F1B"]
    weights = dict(zip(spelt, got["est_mem_weights_bytes"], strict=True))
    assert weights["DualPipe"] == pytest.approx(2 * weights["1F1B"])


def test_a_submission_to_mlperf_runs_in_fp8_where_it_states_no_precision() -> None:
    found = predict(
        row(source_id="mlperf_training_v5.1", precision=None, accelerator="B300"),
        row(source_id="mlperf_training_v5.1", precision="fp8", accelerator="B300"),
        row(source_id="mlperf_training_v5.1", precision=None, accelerator="A100-SXM-80GB"),
        row(source_id="mine", precision=None, accelerator="B300"),
    )
    seconds, notes = found["est_step_time_s"], found["est_assumptions"].fill_null("")
    assert seconds[0] == seconds[1] < seconds[3]
    assert [("FP8, as" in note) for note in notes] == [True, False, False, False]


def test_submissions_on_gaudi_run_in_fp8_from_the_round_on_that_had_it() -> None:
    before, since = predict(
        *(
            row(source_id=f"mlperf_training_{one}", precision=None, software_year=None, accelerator="Gaudi2")
            for one in ("v3.0", "v3.1")
        )
    ).iter_rows(named=True)
    assert before["est_step_time_s"] > 1.2 * since["est_step_time_s"]
    assert "FP8, as" not in (before["est_assumptions"] or "")
    assert "FP8, as" in since["est_assumptions"]


def test_a_version_that_names_a_framework_tells_which_one_ran() -> None:
    (by_version, by_name, bare) = predict(
        row(framework="megatron", framework_version="NeMo 24.09", accelerator="H100-SXM-80GB"),
        row(framework="nemo", accelerator="H100-SXM-80GB"),
        row(framework="megatron", framework_version="0.9.0", accelerator="H100-SXM-80GB"),
    ).iter_rows(named=True)
    assert by_version["est_mem_bytes"] == by_name["est_mem_bytes"] < bare["est_mem_bytes"]
    assert by_version["est_assumptions"] == by_name["est_assumptions"]


@pytest.mark.parametrize(
    ("written", "word"),
    [
        ("Megatron-LM", "megatron"),
        ("Megatron + DeepSpeed", "megatron-deepspeed"),
        ("Pax", "paxml"),
        ("my own", "other"),
    ],
)
def test_frameworks_are_known_by_what_tables_call_them(written: str, word: str) -> None:
    found, known = predict(row(framework=written), row(framework=word)).iter_rows(named=True)
    assert found["est_step_time_s"] == known["est_step_time_s"]
    assert found["est_assumptions"] == known["est_assumptions"]


@pytest.mark.parametrize(
    ("framework", "mode"), [("paxml", "full"), ("maxtext", "full"), ("torchtitan", "selective"), ("megatron", "none")]
)
def test_a_trainer_recomputes_what_it_does_unasked(framework: str, mode: str) -> None:
    unsaid, stated, none = predict(
        *(row(framework=framework, recompute=recompute) for recompute in (None, mode, "none"))
    ).iter_rows(named=True)
    assert unsaid["est_step_time_s"] == stated["est_step_time_s"]
    assert (unsaid["est_step_time_s"] > none["est_step_time_s"]) == (mode != "none")
    assumed = "no recomputation" if mode == "none" else f"{mode} recomputation, the trainer's default"
    assert assumed in unsaid["est_assumptions"]
    assert "recomputation" not in (stated["est_assumptions"] or "")


def test_containers_with_megatron_bridge_keep_gradients_in_32_bit() -> None:
    before, since, bridge = predict(
        *(
            row(framework=name, framework_version=version, accelerator="H100-SXM-80GB")
            for name, version in (("megatron", "NeMo 25.07"), ("megatron", "NeMo 25.09"), ("megatron", "0.2.0"))
        )
    ).iter_rows(named=True)
    assert (
        since["est_mem_gradients_bytes"] == bridge["est_mem_gradients_bytes"] == 2 * before["est_mem_gradients_bytes"]
    )


@pytest.mark.parametrize(
    ("changes", "is_covered"),
    [
        ({"accelerator": "B200-180GB", "source_id": "simumax_b200"}, True),
        ({"accelerator": "B200-180GB"}, False),  # other machines are faster
        ({"accelerator": "GB200"}, False),
        ({"accelerator": "A100-SXM-80GB", "flash_attention": "false"}, True),
        ({"accelerator": "A100-SXM-80GB"}, False),
    ],
)
def test_constants_of_a_fit_are_for_the_runs_that_it_is_good_for(changes: dict[str, str], is_covered: bool) -> None:
    of_framework, of_none = predict(row(framework="megatron", **changes), row(framework="other", **changes)).iter_rows(
        named=True
    )
    assumed = of_framework["est_assumptions"] or ""
    assert ("not those fitted to other runs of megatron" in assumed) is not is_covered
    # Megatron-LM's usual choices hold all the same: its products add up gradients.
    assert of_framework["est_step_time_s"] != of_none["est_step_time_s"]
