"""The question that a row asks: its model, the cluster it states, and the constants that were chosen for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sweepscope.pipeline.estimate.physics.fabrics import fabric_of, with_fabric
from sweepscope.pipeline.estimate.physics.profile import Profile, choose_profile
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.rows.model_shape import complete_shape
from sweepscope.pipeline.estimate.rows.refusals import is_processor, no_cluster
from sweepscope.pipeline.estimate.rows.stated_facts import with_choices, with_facts, with_usual, with_usual_facts
from sweepscope.pipeline.reference.accelerators import EIGHT_BIT, SIXTEEN_BIT
from sweepscope.pipeline.reference.clusters import (
    UNKNOWN,
    Cluster,
    DataSheet,
    Precision,
    cluster_of_sheet,
    find_cluster,
    with_network,
)
from sweepscope.pipeline.reference.model_shape import ModelShape
from sweepscope.pipeline.reference.vocabulary import framework_of

OK: Final = "ok"
"""Status of a row that was estimated."""
ChooseProfile = Callable[[str, str | None], Profile]
"""Constants by generation of the card and framework."""


def cluster_of(row: dict[str, Any]) -> Cluster | None:
    """The cluster of a row, on the network that it states per accelerator or by the cards of its hosts."""
    hosts = {"gpus_per_node": row["gpus_per_node"], "gpus_per_domain": row["gpus_per_domain"]}
    cluster = find_cluster(row["accelerator"], **hosts)
    if cluster is None and (sheet := _sheet_of(row)) is not None:
        cluster = cluster_of_sheet(row["accelerator"], sheet, **hosts)
    stated = row["network_gbit_per_s"]
    if cluster is not None and not stated and row["nic_gbit_per_s"] and row["nics_per_node"]:
        stated = row["nic_gbit_per_s"] * row["nics_per_node"] / cluster.gpus_per_node
    return with_network(cluster, stated) if cluster is not None and stated else cluster


def _sheet_of(row: dict[str, Any]) -> DataSheet | None:
    """What a row states of an accelerator that no table has; None without a peak, or for a processor."""
    if not row["peak_tflops_bf16"] or is_processor(row["accelerator"]):
        return None

    def stated(name: str, unit: float) -> float | None:
        return unit * row[name] if row[name] else None

    return DataSheet(
        peak_flops=1e12 * row["peak_tflops_bf16"],
        peak_flops_fp8=stated("peak_tflops_fp8", 1e12),
        memory_bytes=stated("device_memory_gb", 1e9),
        memory_bytes_per_s=stated("memory_gb_per_s", 1e9),
        link_bytes_per_s=stated("link_gb_per_s", 1e9),
    )


def _assumed_of(cluster: Cluster) -> list[str]:
    """What stands for the data of a card that no table has."""
    if cluster.generation != UNKNOWN:
        return []
    memory, speed, links = (
        1e-9 * value for value in (cluster.memory_bytes, cluster.memory_bytes_per_s, cluster.link_bytes_per_s)
    )
    peak = f"{cluster.accelerator} by its peak of {1e-12 * cluster.peak_flops:g} TFLOP/s"
    return [f"{peak}, {memory:.0f} GB at {speed:.0f} GB/s, links of {links:.0f} GB/s"]


def ask(row: dict[str, Any], choose: ChooseProfile = choose_profile) -> tuple[Question | None, str, list[str]]:
    """(question, "", assumptions) of a row's model, cluster and constants, or (None, reason, [])."""
    if not row["accelerator"]:
        return None, "accelerator not stated", []
    if not row["seq_len"]:
        return None, "sequence length not stated", []
    cluster = cluster_of(row)
    if cluster is None:
        return None, no_cluster(row["accelerator"]), []
    framework = row["framework"] or framework_of(row["source_id"] or "")
    precision, roughly = _precision(row, cluster, framework)
    shape, reason, assumed = complete_shape(row)
    if shape is None:
        return None, reason, []

    def with_constants(chosen: Profile) -> tuple[Question, list[str]]:
        profile = with_fabric(with_choices(chosen, framework), fabric_of(row["source_id"]))
        whole, usual = with_usual(row, framework, profile)
        measured = [profile.about["fabric"]] if "fabric" in profile.about else []
        facts = with_facts(profile, whole, framework)
        return Question(shape, cluster, facts, row["seq_len"], precision), [*usual, *measured]

    asked, usual = with_constants(choose(cluster.generation, framework))
    if not is_covered(asked, row["source_id"]):
        asked, usual = with_constants(choose(cluster.generation, None))
        left = f"constants of {cluster.generation.capitalize()}, not those fitted to other runs of {framework}"
        usual = [left, *usual]
    return asked, "", _assumed_of(cluster) + assumed + roughly + usual


def question_on(
    cluster: Cluster,
    shape: ModelShape,
    seq_len: int,
    precision: Precision,
    *,
    choose: ChooseProfile,
    framework: str | None,
    stated: dict[str, Any] | None = None,
) -> Question:
    """A question that no row asks: on the constants of a framework, or of the generation where those do not cover it.

    `stated`: FACTS beside its usual choices.
    """

    def on_constants_of(name: str | None) -> Question:
        profile = with_usual_facts(choose(cluster.generation, name), framework, stated)
        return Question(shape, cluster, profile, seq_len, precision)

    asked = on_constants_of(framework)
    return asked if is_covered(asked) else on_constants_of(None)


def is_covered(asked: Question, source_id: str | None = None) -> bool:
    """Whether a question is one of those that its constants were fitted for (`about.covers` of a profile: values by
    fact, the source of a row among them); those that name none are for all."""
    facts = {
        "source_id": source_id,
        "accelerator": asked.cluster.accelerator,
        "precision": asked.precision,
        "is_flash": asked.profile.is_flash,
    }
    return all(facts.get(name) in values for name, values in asked.profile.about.get("covers", {}).items())


_OF_MLPERF: Final[dict[str, Precision]] = {"hopper": "fp8", "blackwell": "fp8", "cdna3": "fp8", "cdna4": "fp8"}
"""Precision of submissions to MLPerf that state none, by generation: each bundled row of NVIDIA's that states one runs
in FP8 or FP4 (mlcommons/training_results_v3.0 to v5.1, `config_common*.sh`), AMD's Llama 3.1 8B of v5.1 in FP8."""
_FP8_ROUND: Final = {"gaudi": 2023.8}
"""Year of the round from which on submissions on a generation run in FP8: Intel's of v3.1 (its page of training
performance on Gaudi 2); those of v3.0 had no FP8 yet."""
_FP4_ROUND: Final = 2025.8
"""Year of MLPerf Training v5.1, from which on NVIDIA's submissions on Blackwell run in NVFP4."""


def _of_mlperf(cluster: Cluster, year: float) -> Precision | None:
    """Precision of submissions of a round on a card, None where nothing is known of them."""
    if cluster.generation == "blackwell" and "fp4" in cluster.precisions and year >= _FP4_ROUND:
        return "fp4"
    if year >= _FP8_ROUND.get(cluster.generation, float("inf")):
        return "fp8"
    return _OF_MLPERF.get(cluster.generation)


def _precision(row: dict[str, Any], cluster: Cluster, framework: str | None) -> tuple[Precision, list[str]]:
    """(precision of products, what was assumed) of the one that a row states; 16 bit where it states none.

    What the card has not is taken as the next wider one that it has. Of a precision that is none of ours the card's
    usual is taken: FP8 where it has that, else 16 bit.
    """
    stated = row["precision"]
    if stated is None and framework == "mlperf" and (usual := _of_mlperf(cluster, row["software_year"] or 0.0)):
        return usual, [f"{usual.upper()}, as in other submissions to MLPerf"]
    if stated is None or stated in SIXTEEN_BIT:
        return "bf16", []
    asked: Precision = "fp4" if stated == "fp4" else "fp8"
    taken = asked if asked in cluster.precisions else cluster.precisions[-1]
    words = "16 bit" if taken == "bf16" else taken.upper()
    if stated != "fp4" and stated not in EIGHT_BIT:
        return taken, [f"precision that is not stated plainly, estimated as {words}"]
    if taken != asked:
        return taken, [f"{asked.upper()} estimated as {words}, for {cluster.accelerator} has none"]
    is_open = taken == "fp4" and row["bf16_layers"] is None
    return taken, ["products of all layers in FP4"] if is_open else []
