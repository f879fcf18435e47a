"""Samples as JSON and as the tools print them for people; shapes of the tools' sources, numbers made up."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from sweepscope.pipeline.memory.gpu_samples.samples import is_samples, read_samples

MIB = 1 << 20


def rows(text: str) -> list[dict[str, Any]]:
    assert is_samples(text)
    frame, rejects = read_samples(text)
    assert not rejects
    return list(frame.iter_rows(named=True))


def quantity(value: float, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": unit}


ROCM = {
    "card0": {"GPU use (%)": "17", "VRAM Total Memory (B)": "64", "VRAM Total Used Memory (B)": "5"},
    "card12": {"GPU use (%)": "N/A", "VRAM Total Memory (B)": "64", "VRAM Total Used Memory (B)": "6"},
    "system": {"Driver version": "6.7"},
}
AMD = {
    "gpu": 3,
    "usage": {"gfx_activity": quantity(95, "%"), "umc_activity": quantity(33, "%"), "mm_activity": "N/A"},
    "power": {"socket_power": quantity(650, "W"), "gfx_voltage": "N/A"},
    "temperature": {"edge": "N/A", "hotspot": quantity(61, "C"), "mem": quantity(55, "C")},
    "mem_usage": {
        "total_vram": quantity(64, "MB"),
        "used_vram": quantity(5, "MB"),
        "free_vram": quantity(59, "MB"),
        "used_visible_vram": quantity(1, "MB"),
        "used_gtt": quantity(2, "MB"),
    },
}


@pytest.mark.parametrize("indent", [None, 4])
def test_rocm_smi_as_json_again_and_again(indent: int | None) -> None:
    text = json.dumps(ROCM, indent=indent)
    samples = rows(f"{text}\nSat Jan  3 15:36:56 UTC 2026\n{text}\n")
    assert [(row["gpu_index"], row["mem_used_bytes"], row["mem_total_bytes"]) for row in samples] == [
        (0, 5, 64),
        (12, 6, 64),
        (0, 5, 64),
        (12, 6, 64),
    ]
    assert [row["gpu_utilisation"] for row in samples[:2]] == [0.17, None]
    assert samples[2]["line_no"] == text.count("\n") + 3


@pytest.mark.parametrize("document", [[AMD], {"gpu_data": [AMD]}, AMD])
def test_amd_smi_metric_as_json(document: Any) -> None:
    (row,) = rows(json.dumps(document, indent=4))
    assert row == {
        "line_no": 1,
        "gpu_index": 3,
        "gpu_utilisation": 0.95,
        "mem_utilisation": 0.33,
        "power_w": 650.0,
        "temperature_c": 61.0,
        "mem_total_bytes": 64 * MIB,
        "mem_used_bytes": 5 * MIB,
        "mem_free_bytes": 59 * MIB,
    }


def test_amd_smi_metric_as_csv() -> None:
    (row,) = rows(
        "gpu,gfx_activity,umc_activity,socket_power,edge,hotspot,mem,total_vram,used_vram,free_vram,used_gtt\n"
        "3,95,33,650,N/A,61,55,64,5,59,2\n"
    )
    assert (row["gpu_index"], row["power_w"], row["temperature_c"]) == (3, 650.0, 61.0)
    assert (row["mem_used_bytes"], row["mem_free_bytes"], row["mem_total_bytes"]) == (5 * MIB, 59 * MIB, 64 * MIB)
    assert row["mem_utilisation"] == pytest.approx(0.33)


def test_gpustat_as_json() -> None:
    gpu = {
        "index": 1,
        "uuid": "GPU-1",
        "name": "NVIDIA A100",
        "temperature.gpu": 45,
        "utilization.gpu": 97,
        "memory.used": 5,
        "memory.total": 64,
        "fan.speed": None,
        "processes": [{"pid": 4, "gpu_memory_usage": 3}],
    }
    (row,) = rows(json.dumps({"hostname": "n1", "query_time": "2026-01-03T15:36:56.5", "gpus": [gpu]}))
    assert row == {
        "line_no": 1,
        "host": "n1",
        "gpu_index": 1,
        "gpu_uuid": "GPU-1",
        "accelerator": "NVIDIA A100",
        "temperature_c": 45.0,
        "gpu_utilisation": 0.97,
        "mem_used_bytes": 5 * MIB,
        "mem_total_bytes": 64 * MIB,
    }


def test_json_that_was_interrupted_is_told() -> None:
    text = json.dumps(ROCM) + '\n{"card0": {"GPU use'
    frame, rejects = read_samples(text + "\n" + json.dumps(ROCM))
    assert frame["line_no"].to_list() == [1, 1, 3, 3]
    assert rejects == [(2, "JSON that is cut off or damaged", '{"card0": {"GPU use')]


@pytest.mark.parametrize("text", ['{"loss": 2.0, "memory": 3}', '[{"gpu": 0, "name": "x"}]', "[1, 2]"])
def test_other_json_is_left_alone(text: str) -> None:
    assert not is_samples(text)


BOX = """\
Sat Jan  3 15:36:56 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 999.11                 Driver Version: 999.11         CUDA Version: 13.9     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |                    0 |
| N/A   33C    P0            671W /  700W |   70001MiB /  80001MiB |     97%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  Tesla V100-SXM2...  Off  | 00000000:3B:00.0 Off |                  N/A |
| 30%   34C    P8     9W / 300W |      0MiB / 16001MiB |    N/A      Default |
+-------------------------------+----------------------+----------------------+
|    0   N/A  N/A      4711      C   python                                      70000MiB |
"""


def test_the_box_of_nvidia_smi() -> None:
    later = BOX[: BOX.index("|   1")].replace("15:36:56", "15:36:57").replace("70001", "70002")
    first, second, again = rows(BOX + later)
    assert first == {
        "line_no": 9,
        "ts": datetime(2026, 1, 3, 15, 36, 56),
        "gpu_index": 0,
        "accelerator": "NVIDIA H100 80GB HBM3",
        "mem_used_bytes": 70001 * MIB,
        "mem_total_bytes": 80001 * MIB,
        "gpu_utilisation": 0.97,
        "power_w": 671.0,
        "temperature_c": 33.0,
    }
    assert (second["gpu_index"], second["accelerator"], second["mem_used_bytes"]) == (1, "Tesla V100-SXM2", 0)
    assert (second["gpu_utilisation"], second["power_w"]) == (None, 9.0)
    assert (again["ts"], again["mem_used_bytes"]) == (datetime(2026, 1, 3, 15, 36, 57), 70002 * MIB)


def test_rocm_smi_as_printed() -> None:
    text = (
        "============ ROCm System Management Interface ============\n"
        "GPU[0]\t\t: Temperature (Sensor edge) (C): 45.0\n"
        "GPU[0]\t\t: VRAM Total Memory (B): 64\nGPU[0]\t\t: VRAM Total Used Memory (B): {}\n"
        "GPU[1]\t\t: VRAM Total Memory (B): 64\nGPU[1]\t\t: VRAM Total Used Memory (B): 6\n"
    )
    samples = rows(text.format(5) + text.format(7))
    assert [(row["gpu_index"], row["mem_used_bytes"]) for row in samples] == [(0, 5), (1, 6), (0, 7), (1, 6)]
    assert (samples[0]["temperature_c"], samples[0]["line_no"]) == (45.0, 2)


def test_amd_smi_as_printed() -> None:
    listed = (
        "GPU: {0}\n    MEM_USAGE:\n        TOTAL_VRAM: 64 MB\n        USED_VRAM: {1} MB\n        USED_GTT: 1 MB\n\n"
    )
    samples = rows(listed.format(0, 5) + listed.format(1, 6) + listed.format(0, 7))
    assert [(row["gpu_index"], row["mem_used_bytes"]) for row in samples] == [(0, 5 * MIB), (1, 6 * MIB), (0, 7 * MIB)]
    table = (
        "GPU  XCP  POWER   GPU_T   MEM_T   GFX_CLK   GFX%   MEM%   ENC%      VRAM_USAGE\n"
        "  0    0  138 W   44 °C   38 °C   133 MHz   50 %    N/A    N/A    0.5/192.0 GB\n"
    )
    (row,) = rows(table)
    assert row == {
        "line_no": 2,
        "gpu_index": 0,
        "power_w": 138.0,
        "temperature_c": 44.0,
        "gpu_utilisation": 0.5,
        "mem_utilisation": None,
        "mem_used_bytes": 512 * MIB,
        "mem_total_bytes": 192 << 30,
    }
    (row,) = rows(
        "GPU  POWER_USAGE  GPU_TEMP  VRAM_USED  VRAM_TOTAL\n  2        138 W     44 °C       5 MB       64 MB\n"
    )
    assert (row["gpu_index"], row["mem_used_bytes"], row["mem_total_bytes"]) == (2, 5 * MIB, 64 * MIB)


def test_rows_without_header_and_time_that_nvidia_smi_alone_prints() -> None:
    samples = rows(
        "0, NVIDIA A100-SXM4-80GB, 5 MiB, 64 MiB, 33 %\n1, NVIDIA A100-SXM4-80GB, 6 MiB, 64 MiB, [N/A]\n"
        "0, NVIDIA A100-SXM4-80GB, 7 MiB, 64 MiB, 33 %\n1, NVIDIA A100-SXM4-80GB, 8 MiB, 64 MiB, [N/A]\n"
    )
    assert [(row["gpu_index"], row["mem_used_bytes"], row["mem_total_bytes"]) for row in samples] == [
        (0, 5 * MIB, 64 * MIB),
        (1, 6 * MIB, 64 * MIB),
        (0, 7 * MIB, 64 * MIB),
        (1, 8 * MIB, 64 * MIB),
    ]


AMD_BOX = """\
+------------------------------------------------------------------------------+
| AMD-SMI 26.0.0+37d158ab      amdgpu version: 6.14.14  ROCm version: 7.0.0    |
| BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |
| GPU  HIP-ID  OAM-ID  Partition-Mode | GFX-Uti    Fan               Mem-Usage |
|=====================================+========================================|
| 0000:05:00.0    AMD Instinct MI325X | 2 %      36 °C   0          138/1000 W |
|   0       0       3        SPX/NPS1 | 71 %       N/A           285/262128 MB |
|-------------------------------------+----------------------------------------|
| 0000:c5:00.0    AMD Radeon Graphics | N/A        N/A   0             N/A/0 W |
|   1       1     N/A             N/A | N/A     29.8 %            161/98304 MB |
+-------------------------------------+----------------------------------------+
| Processes:                                                                   |
|  GPU        PID  Process Name          GTT_MEM  VRAM_MEM  MEM_USAGE     CU % |
|    0      36750  python3.12             2.0 MB    9.3 GB     9.5 GB  N/A     |
+------------------------------------------------------------------------------+
"""


def test_amd_smis_box() -> None:
    first, second = rows(AMD_BOX)
    assert first == {
        "line_no": 7,
        "gpu_index": 0,
        "accelerator": "AMD Instinct MI325X",
        "mem_utilisation": 0.02,
        "temperature_c": 36.0,
        "power_w": 138.0,
        "gpu_utilisation": 0.71,
        "mem_used_bytes": 285 * MIB,
        "mem_total_bytes": 262128 * MIB,
    }
    known = {name: value for name, value in second.items() if value is not None}
    assert known == {
        "line_no": 10,
        "gpu_index": 1,
        "accelerator": "AMD Radeon Graphics",
        "mem_used_bytes": 161 * MIB,
        "mem_total_bytes": 98304 * MIB,
    }


@pytest.mark.parametrize(
    "table",
    [
        "GPU  Temp   AvgPwr  SCLK     MCLK     Fan   Perf  PwrCap  VRAM%  GPU%  \n"
        "0    41.0c  90.0W   1700Mhz  1600Mhz  0.0%  auto  560.0W   57%   99%    \n"
        "1    38.0c  N/A     800Mhz   1600Mhz  0.0%  auto  0.0W      0%   N/A    \n",
        "Device  Node  IDs             Temp        Power     Partitions    SCLK    MCLK     PwrCap  VRAM%  GPU%  \n"
        "              (DID,    GUID)  (Junction)  (Socket)  (Mem, Compute)                                      \n"
        "0       2     0x74a1,  28851  41.0°C      90.0W     NPS1, SPX, 0  132Mhz  900Mhz   750.0W  57%    99%    \n"
        "1       3     0x74a1,  51499  38.0°C      N/A       NPS1, SPX, 0  210Mhz  1300Mhz  750.0W  0%     N/A    \n",
    ],
)
def test_rocm_smis_concise_table(table: str) -> None:
    samples = rows(f"====== ROCm System Management Interface ======\n{table}===== End of ROCm SMI Log =====\n")
    assert [(r["gpu_index"], r["temperature_c"], r["power_w"], r["gpu_utilisation"]) for r in samples] == [
        (0, 41.0, 90.0, 0.99),
        (1, 38.0, None, None),
    ]


def test_gpustat() -> None:
    samples = rows(
        "gpu01                  Mon Dec  2 10:11:12 2024  535.104.05\n"
        "[0] NVIDIA A100-SXM4-80GB | 35'C,   0 % |  1234 / 81920 MB | alice(1200M)\n"
        "[1] NVIDIA A100-SXM4-80GB | 65°C,  30 %,  97 %,  312 / 400 W | 80123 / 81920 MB | bob(80000M) eve(100M)\n"
        "[2] NVIDIA A100-SXM4-80GB | ??°C,  ?? % |     3 / 81920 MB |\n"
    )
    assert {(row["host"], row["ts"]) for row in samples} == {("gpu01", datetime(2024, 12, 2, 10, 11, 12))}
    names = ("gpu_index", "temperature_c", "gpu_utilisation", "power_w", "mem_used_bytes")
    assert [tuple(row[name] for name in names) for row in samples] == [
        (0, 35.0, 0.0, None, 1234 * MIB),
        (1, 65.0, 0.97, 312.0, 80123 * MIB),
        (2, None, None, None, 3 * MIB),
    ]


def test_the_box_on_windows_names_the_drivers_model() -> None:
    (row,) = rows(
        "| NVIDIA-SMI 560.94                 Driver Version: 560.94         CUDA Version: 12.6     |\n"
        "|   0  NVIDIA GeForce RTX 4090      WDDM  |   00000000:01:00.0  On |                  Off |\n"
        "|  0%   45C    P8             20W /  450W |    1087MiB /  24564MiB |      3%      Default |\n"
    )
    assert (row["accelerator"], row["mem_used_bytes"]) == ("NVIDIA GeForce RTX 4090", 1087 * MIB)


def test_gpustat_with_the_power_alone() -> None:
    """--show-power draw, which leaves the limit out."""
    (row,) = rows("[0] NVIDIA A100-SXM4-80GB | 56'C,  99 %, 312 W | 71203 / 81920 MB | eve(71190M)\n")
    assert (row["power_w"], row["mem_used_bytes"]) == (312.0, 71203 * MIB)


def test_the_box_of_gaudis() -> None:
    samples = rows(
        "| HL-SMI Version:                              hl-1.19.0-fw-57.1.0.0           |\n"
        "| AIP  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncor-Events|\n"
        "|   0  HL-225              N/A  | 0000:33:00.0     N/A |                   0  |\n"
        "| N/A   27C   N/A    93W / 600W |   4812MiB / 98304MiB |     4%           N/A |\n"
        "|   1  HL-225              N/A  | 0000:9a:00.0     N/A |                   0  |\n"
        "| N/A   28C   N/A    88W / 600W |    768MiB / 98304MiB |     0%           N/A |\n"
        "|   0        N/A   N/A    N/A                                      N/A        |\n"
    )
    names = ("gpu_index", "accelerator", "temperature_c", "power_w", "mem_used_bytes", "mem_total_bytes")
    assert [tuple(row[name] for name in names) for row in samples] == [
        (0, "HL-225", 27.0, 93.0, 4812 * MIB, 98304 * MIB),
        (1, "HL-225", 28.0, 88.0, 768 * MIB, 98304 * MIB),
    ]
    assert [row["gpu_utilisation"] for row in samples] == [0.04, 0.0]


def test_the_boxes_of_ascends_chips() -> None:
    """A card of one chip with HBM, of two that count across cards, and one without HBM."""
    head = "| npu-smi 24.1.rc2                 Version: 24.1.rc2                                            |\n"
    one = rows(
        f"{head}| 3     910B3               | OK            | 93.8        49                0    / 0             |\n"
        "| 0                         | 0000:C1:00.0  | 87          0    / 0          33470/ 65536         |\n"
    )
    two = rows(
        f"{head}| 1     Ascend910           | OK            | 168.1       36                0    / 0             |\n"
        "| 0     2                   | 0000:9D:00.0  | 5           0    / 0          3384 / 65536         |\n"
        "| 1     Ascend910           | OK            | -           36                0    / 0             |\n"
        "| 1     3                   | 0000:9F:00.0  | 0           0    / 0          3385 / 65536         |\n"
    )
    other = rows(
        f"{head}| 2       310P3             | OK            | NA          49                0     / 0            |\n"
        "| 0                         | 0000:01:00.0  | 0           1852 / 44280                           |\n"
    )
    names = ("gpu_index", "accelerator", "temperature_c", "power_w", "gpu_utilisation", "mem_used_bytes")
    assert [tuple(row[name] for name in names) for row in [*one, *two, *other]] == [
        (3, "910B3", 49.0, 93.8, 0.87, 33470 * MIB),
        (2, "Ascend910", 36.0, 168.1, 0.05, 3384 * MIB),
        (3, "Ascend910", 36.0, None, 0.0, 3385 * MIB),
        (2, "310P3", 49.0, None, 0.0, 1852 * MIB),
    ]
    assert [row["mem_total_bytes"] // MIB for row in [*one, *two, *other]] == [65536, 65536, 65536, 44280]
