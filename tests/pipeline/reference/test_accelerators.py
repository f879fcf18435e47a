from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.ingest.validate import validate
from sweepscope.pipeline.reference import accelerators
from sweepscope.schemas.tables.published import ACCELERATORS


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("NVIDIA B200", "B200-SXM-180GB"),
        ("H100-SXM-80GB", "H100-SXM-80GB"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM-80GB"),
        ("H100-80GB-SXM", "H100-SXM-80GB"),
        ("A100 40GB PCIe", "A100-PCIe-40GB"),
        ("nvidia h100 pcie", "H100-PCIe-80GB"),
        ("AMD Instinct MI300X", "MI300X"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM-40GB"),
        ("Tesla V100-SXM2-32GB", "V100-SXM-32GB"),
        ("Intel(R) Gaudi(R) 2 AI Accelerator", "Gaudi2"),
        ("TPU v5p", "TPU-v5p"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("NVIDIA GH200 480GB", "GH200-96GB"),
        ("H800-SXM-80GB", "H800-80GB"),
        ("NVIDIA H20-3e", "H20-141GB"),
        ("MI250X-64GB", "MI250X-GCD"),
        ("AMD Instinct MI300X-192GB", "MI300X"),
        ("NVIDIA RTX A6000", "RTX-A6000"),
        ("Tesla T4", "T4"),
        ("NVIDIA GeForce RTX 5090", "RTX-5090"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000-Blackwell"),
        ("Intel(R) Data Center GPU Max 1550", "Max-1550"),
        ("AMD Instinct MI300A", "MI300A"),
        ("Ascend910B", "Ascend-910B"),
        ("cpu", "CPU"),
    ],
)
def test_names_accelerators_as_drivers_and_tables_spell_them(text: str, name: str) -> None:
    assert accelerators.canonical_accelerator(text) == name


@pytest.mark.parametrize("text", ["", "NVIDIA", "H1000", "H100 80GB HBM9", "Quadro"])
def test_does_not_guess_an_unknown_accelerator(text: str) -> None:
    assert accelerators.canonical_accelerator(text) is None


def test_the_cards_of_all_instance_types_are_known() -> None:
    instances = accelerators.instances()
    assert {*instances.values()} <= {*accelerators.load_accelerators()["accelerator"]}
    assert all(accelerators.canonical_accelerator(f"ml.{name}") == card for name, card in instances.items())


def test_keeps_unknown_and_missing_names_as_found() -> None:
    column = pl.Series("accelerator", ["NVIDIA B200", "Quadro", None])
    assert accelerators.canonical_accelerators(column).to_list() == ["B200-SXM-180GB", "Quadro", None]


def test_bundled_table_satisfies_its_schema() -> None:
    result = validate(ACCELERATORS, accelerators.load_accelerators())
    assert result.rejects.is_empty()


def test_no_spelling_means_two_accelerators() -> None:
    table = accelerators.load_accelerators()
    owners: dict[str, set[str]] = {}
    for name, aliases in table.select("accelerator", "aliases").iter_rows():
        for spelling in (name, *(aliases or "").split("|")):
            owners.setdefault(accelerators.canonical_accelerator(spelling) or spelling, set()).add(name)
    owners.pop("", None)
    assert all(names == {key} for key, names in owners.items())


def test_an_80_gb_h100_offers_79_6_gib() -> None:
    table = accelerators.load_accelerators()
    usable = table.filter(pl.col("accelerator") == "H100-SXM-80GB")["memory_bytes"].item()
    assert round(usable / 2**30, 1) == 79.6


@pytest.mark.parametrize(
    ("accelerator", "precision", "peak"),
    [
        ("H100-SXM-80GB", "bf16", 989),
        ("H100-SXM-80GB", "fp16", 989),
        ("H100-SXM-80GB", None, 989),
        ("H100-SXM-80GB", "fp8", 1979),
        ("A100-SXM-80GB", "fp8", None),
        ("GB300", "fp4", 15000),
        ("H100-SXM-80GB", "fp4", None),
        ("H100-SXM-80GB", "unclear", None),
        ("H100-SXM-80GB", "fp32", None),
        ("CPU", "bf16", None),
        ("Quadro", "bf16", None),
        (None, "bf16", None),
    ],
)
def test_peak_follows_the_precision(accelerator: str | None, precision: str | None, peak: float | None) -> None:
    frame = pl.DataFrame(
        {"accelerator": [accelerator], "precision": [precision]},
        schema={"accelerator": pl.String, "precision": pl.String},
    )
    assert frame.select(accelerators.peak_tflops()).item() == peak
