"""dcgm-exporter's fields over a range of time: whatever saved them, the samples are those of its own scrapes."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.memory.gpu_samples.prometheus import is_range, read_range
from sweepscope.pipeline.memory.gpu_samples.samples import is_samples, read_samples
from tests.pipeline.ingest_in_memory import batch_of

START, STEP_S, COUNT = 1_790_000_000, 15, 40
FIELDS = {"DCGM_FI_DEV_FB_USED": 40_000, "DCGM_FI_DEV_GPU_UTIL": 47, "DCGM_FI_DEV_POWER_USAGE": 412.5}
GPUS = [
    {"gpu": str(gpu), "UUID": f"GPU-{gpu}{host}", "modelName": "NVIDIA H100 80GB HBM3", "Hostname": f"node{host}"}
    for host in range(2)
    for gpu in range(4)
]
COLUMNS = ("host", "gpu_index", "gpu_uuid", "accelerator", "ts", "mem_used_bytes", "gpu_utilisation", "power_w")


def series() -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
    """Labels with `__name__`, and times with values, of every field of every GPU."""
    return [
        (
            {"__name__": name, **labels, "job": "dcgm"},
            [(START + STEP_S * at, base + at + int(labels["gpu"])) for at in range(COUNT)],
        )
        for name, base in FIELDS.items()
        for labels in GPUS
    ]


def scraped() -> str:
    """The exporter's own text, scrape after scrape, in milliseconds."""
    by_time: dict[float, list[str]] = {}
    for labels, values in series():
        about = ",".join(f'{name}="{value}"' for name, value in labels.items() if name != "__name__")
        for moment, value in values:
            by_time.setdefault(moment, []).append(f"{labels['__name__']}{{{about}}} {value} {int(moment * 1000)}")
    return "\n".join(line for lines in by_time.values() for line in lines) + "\n"


def query_range() -> str:
    result = [{"metric": labels, "values": [[t, str(v)] for t, v in values]} for labels, values in series()]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def promtool() -> str:
    return json.dumps(json.loads(query_range())["data"]["result"])


def a_query_a_field() -> str:
    """Several answers one after the other: `curl ... >> gpus.json`."""
    result = json.loads(query_range())["data"]["result"]
    return "\n".join(
        json.dumps(
            {"status": "success", "data": {"result": [one for one in result if one["metric"]["__name__"] == name]}}
        )
        for name in FIELDS
    )


def victoria() -> str:
    return "".join(
        json.dumps(
            {"metric": labels, "values": [v for _, v in values], "timestamps": [int(t * 1000) for t, _ in values]}
        )
        + "\n"
        for labels, values in series()
    )


def grafana(*, is_printed: bool) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    names = [
        f"{labels['__name__']}{{" + ", ".join(f'{n}="{v}"' for n, v in labels.items() if n != "__name__") + "}"
        for labels, _ in series()
    ]
    writer.writerow(["Time", *names])
    for at in range(COUNT):
        moment = datetime.fromtimestamp(START + STEP_S * at, UTC)
        shown = f"{moment:%Y-%m-%d %H:%M:%S}" if is_printed else str(int(moment.timestamp() * 1000))
        writer.writerow([shown, *(values[at][1] for _, values in series())])
    return out.getvalue()


FORMS = {
    "query_range": query_range(),
    "promtool": promtool(),
    "several": a_query_a_field(),
    "victoria": victoria(),
    "grafana": grafana(is_printed=True),
    "grafana_epoch": grafana(is_printed=False),
}


def ordered(samples: pl.DataFrame) -> list[tuple[Any, ...]]:
    return (
        samples.with_columns(pl.col("ts").cast(pl.Datetime("us")))
        .select(COLUMNS)
        .sort("host", "gpu_index", "ts")
        .rows()
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_samples_are_those_of_the_exporters_scrapes(form: str) -> None:
    assert is_range(FORMS[form][:16_384])
    found, rejects = read_samples(FORMS[form])
    truth, _ = read_samples(scraped())
    assert rejects == []
    assert ordered(found) == ordered(truth)
    assert found.height == COUNT * len(GPUS)
    assert found["line_no"].to_list() == list(range(1, found.height + 1))
    assert found["ts"].is_sorted()


RECORDED = Path(__file__).parents[3] / "trackers" / "prometheus"
OWN = sorted(RECORDED.glob("*.json"))
PARTS = {"one_field": ("DCGM_FI_DEV_FB_USED", "", ""), "one_host": ("", "node1", ""), "one_gpu": ("", "node0", "1")}
"""Field, host and GPU that a file is limited to; "" for all of them."""


def test_there_are_five_files_of_prometheus_itself() -> None:
    assert len(OWN) >= 5


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_the_samples_are_those_in_the_database_of_prometheus(path: Path) -> None:
    found, rejects = read_samples(path.read_text())
    assert rejects == []
    with (RECORDED / "samples.csv").open(newline="") as file:
        stored = list(csv.reader(file))
    wanted = {
        (name, host, int(gpu), int(moment)): float(value)
        for name, host, gpu, moment, value in stored
        if all(
            part in ("", own) for part, own in zip(PARTS.get(path.stem, ("", "", "")), (name, host, gpu), strict=True)
        )
    }
    columns = {
        "DCGM_FI_DEV_FB_USED": pl.col("mem_used_bytes") / 2**20,
        "DCGM_FI_DEV_GPU_UTIL": pl.col("gpu_utilisation") * 100,
        "DCGM_FI_DEV_POWER_USAGE": pl.col("power_w"),
    }
    rows = found.with_columns(pl.col("ts").dt.epoch("ms").alias("moment"))
    read = {
        (name, host, gpu, moment): value
        for name, column in columns.items()
        if column.meta.root_names()[0] in rows.columns
        for host, gpu, moment, value in rows.select("host", "gpu_index", "moment", value=column).iter_rows()
        if value is not None
    }
    assert read == pytest.approx(wanted)
    assert wanted


def test_instances_of_a_gpu_and_values_that_are_none_are_left_out() -> None:
    document = json.loads(promtool())[:2]
    document[1]["metric"]["GPU_I_ID"] = "3"
    document[0]["values"][0][1], document[0]["values"][1][1] = "NaN", "+Inf"
    found, _ = read_range(json.dumps(document))
    assert found.height == COUNT - 2
    assert found["gpu_index"].unique().to_list() == [0]


@pytest.mark.parametrize("form", ["several", "victoria"])
def test_what_is_whole_before_a_cut_is_read_and_the_rest_counted(form: str) -> None:
    text = FORMS[form]
    found, rejects = read_range(text[: len(text) * 2 // 3])
    assert 0 < found.height <= COUNT * len(GPUS)
    ((_, reason, _),) = rejects
    assert "cut off" in reason


@pytest.mark.parametrize(
    "text",
    [
        '{"__name__": 1}',
        "Time,loss\n1,2\n",
        '[{"metric": {"__name__": "up"}, "values": []}]',
        "",
        "DCGM_FI_DEV_FB_USED",
    ],
)
def test_other_texts_are_none(text: str) -> None:
    assert not is_range(text)


@pytest.mark.parametrize("damage", ["{", "[1, 2", '"x"', "null"])
def test_a_text_without_samples_says_so(damage: str) -> None:
    with pytest.raises(ValueError, match=r"no sample of a GPU|cut off"):
        read_range(damage)


@pytest.mark.parametrize("name", ["prometheus.json", "dcgm_range.json", "gpus.json", "panel.csv"])
def test_files_beside_a_run_are_samples_of_it(name: str) -> None:
    text = FORMS["grafana" if name.endswith("csv") else "query_range"]
    assert is_samples(text[:4096])
    batch = batch_of({f"run/{name}": text})
    (file,) = batch.files.to_dicts()
    assert (file["status"], file["parser"]) == ("parsed", "gpu_samples")
    assert batch.other["gpu_samples"].height == COUNT * len(GPUS)
