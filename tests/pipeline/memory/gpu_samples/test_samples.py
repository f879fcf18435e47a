"""Samples of nvidia-smi and DCGM, with the headers and holes that people's files have."""

from __future__ import annotations

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


def test_values_with_units() -> None:
    (row,) = rows(
        "timestamp, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], power.draw [W]\n"
        "2026/01/03 15:36:53.507, NVIDIA GeForce RTX 4090, 1 %, 25 %, 1129 MiB, 33.09 W\n"
    )
    assert row == {
        "line_no": 2,
        "ts": datetime(2026, 1, 3, 15, 36, 53, 507_000),
        "accelerator": "NVIDIA GeForce RTX 4090",
        "gpu_utilisation": 0.01,
        "mem_utilisation": 0.25,
        "mem_used_bytes": 1129 * MIB,
        "power_w": 33.09,
    }


def test_no_units_and_what_a_device_does_not_know() -> None:
    samples = rows(
        "index, uuid, memory.used [MiB], memory.total [MiB], memory.free [MiB], temperature.gpu, power.draw [W]\n"
        "0, GPU-1, 5, 80, 75, 30, [N/A]\n1, GPU-2, [Unknown Error], 80, [Not Supported], 31, 71.5\n"
    )
    assert [row["mem_used_bytes"] for row in samples] == [5 * MIB, None]
    assert [row["mem_free_bytes"] for row in samples] == [75 * MIB, None]
    assert [(row["gpu_index"], row["temperature_c"], row["power_w"]) for row in samples] == [
        (0, 30, None),
        (1, 31, 71.5),
    ]


def test_a_banner_before_the_header_and_a_second_header() -> None:
    samples = rows(
        "Fri Dec  3 13:29:07 2021       \n+-----+\n| NVIDIA-SMI 495.44 |\n+-----+\n\n"
        "index, memory.used [MiB]\n0, 1 MiB\nmemory.used [MiB], index\n2 MiB, 3\n"
    )
    assert [(row["line_no"], row["gpu_index"], row["mem_used_bytes"]) for row in samples] == [
        (7, 0, MIB),
        (9, 3, 2 * MIB),
    ]


def test_a_header_of_ones_own() -> None:
    samples = rows("time,gpu_id,mem_used_gb,gpu_util\n2025-05-06T07:08:09,3,1.5,50\n1746515289,4,2,0\n")
    assert [row["ts"] for row in samples] == [datetime(2025, 5, 6, 7, 8, 9), datetime(2025, 5, 6, 7, 8, 9)]
    assert [row["mem_used_bytes"] for row in samples] == [int(1.5 * (1 << 30)), 2 << 30]
    assert [row["gpu_utilisation"] for row in samples] == [0.5, 0.0]


def test_a_line_that_was_interrupted_is_told() -> None:
    frame, rejects = read_samples("timestamp, memory.used [MiB]\n2026/01/03 15:36:53.507, 1 MiB\n2026/01/03 15")
    assert frame.height == 1
    assert rejects == [(3, "2 values expected", "2026/01/03 15")]


def test_dcgmi_repeats_its_header() -> None:
    samples = rows(
        "#Entity   FBTTL   FBFRE   FBUSD   GPUTL\nID\nGPU 0     81559   80000   1559    98\n"
        "GPU 1     81559   N/A     1559    0\n"
        "#Entity   FBTTL   FBFRE   FBUSD   GPUTL\nID\nGPU 0  81559  80001  1558  97\n"
    )
    assert [(row["line_no"], row["gpu_index"], row["mem_free_bytes"]) for row in samples] == [
        (3, 0, 80_000 * MIB),
        (4, 1, None),
        (7, 0, 80_001 * MIB),
    ]
    assert samples[0]["gpu_utilisation"] == 0.98


def test_the_exporters_fields_of_one_gpu_are_one_row() -> None:
    labels = '{gpu="%d",UUID="GPU-%d",device="nvidia0",modelName="NVIDIA H100",Hostname="n1"}'
    scrape = "".join(
        f"# HELP {name} x\n" + "".join(f"{name}{labels % (gpu, gpu)} {value + gpu}\n" for gpu in (0, 1))
        for name, value in (("DCGM_FI_DEV_FB_USED", 100), ("DCGM_FI_DEV_FB_FREE", 50), ("DCGM_FI_DEV_SM_CLOCK", 1))
    )
    samples = rows(scrape * 2)
    assert [(row["gpu_uuid"], row["mem_used_bytes"], row["mem_free_bytes"]) for row in samples] == [
        ("GPU-0", 100 * MIB, 50 * MIB),
        ("GPU-1", 101 * MIB, 51 * MIB),
    ] * 2
    assert (samples[0]["host"], samples[0]["accelerator"], samples[0]["gpu_index"]) == ("n1", "NVIDIA H100", 0)


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "2026/01/03 15:36:53.507, NVIDIA, 1 %\n", "", "loss, step\n1.0, 2\n"])
def test_other_tables_are_left_alone(text: str) -> None:
    assert not is_samples(text)


UUID = "GPU-{}b3f1c2d-0000-4c6e-9a55-5f0d3c2b1a00"


def test_rows_without_a_header_are_told_by_what_stands_in_them() -> None:
    """--query-gpu=timestamp,index,uuid,name,memory.used,memory.total,utilization.gpu,power.draw, noheader, two GPUs."""
    samples = rows(
        "".join(
            f"2026/01/03 15:36:{at:02}.518, {gpu}, {UUID.format(gpu)}, NVIDIA H100 80GB HBM3, {1000 + 100 * at + gpu} MiB, "
            f"81559 MiB, {at} %, 71.06 W\n"
            for at in range(3)
            for gpu in (0, 1)
        )
    )
    assert len(samples) == 6
    assert samples[3] == {
        "line_no": 4,
        "ts": datetime(2026, 1, 3, 15, 36, 1, 518_000),
        "gpu_index": 1,
        "gpu_uuid": UUID.format(1),
        "accelerator": "NVIDIA H100 80GB HBM3",
        "mem_used_bytes": 1101 * MIB,
        "mem_total_bytes": 81559 * MIB,
        "gpu_utilisation": 0.01,
        "power_w": 71.06,
    }


def test_the_total_is_the_column_that_stays_whatever_its_place() -> None:
    samples = rows(
        "2026/01/03 15:36:00.518, 81559 MiB, 10 MiB\n2026/01/03 15:36:01.518, 81559 MiB, 99 MiB\n"
        "2026/01/03 15:36:02.518, 81559 MiB, [N/A]\n"
    )
    assert [row["mem_used_bytes"] for row in samples] == [10 * MIB, 99 * MIB, None]
    assert {row["mem_total_bytes"] for row in samples} == {81559 * MIB}


def test_without_units_memory_is_the_large_numbers_and_the_index_goes_round() -> None:
    samples = rows(
        "".join(
            f"2026/01/03 15:36:{at:02}.518, {gpu}, {17_000 + at}, 81559, {40 + at}\n"
            for at in range(2)
            for gpu in (0, 1)
        )
    )
    assert [(row["gpu_index"], row["mem_used_bytes"]) for row in samples] == [
        (0, 17_000 * MIB),
        (1, 17_000 * MIB),
        (0, 17_001 * MIB),
        (1, 17_001 * MIB),
    ]
    assert set(samples[0]) == {
        "line_no",
        "ts",
        "gpu_index",
        "mem_used_bytes",
        "mem_total_bytes",
    }  # 40: a share? degrees?


def test_three_columns_of_memory_without_a_header_cannot_be_told_apart() -> None:
    text = "".join(f"2026/01/03 15:36:0{at}.518, {at} MiB, {80 - at} MiB, 80 MiB\n" for at in range(3))
    assert is_samples(text)
    with pytest.raises(ValueError, match="record with a header"):
        read_samples(text)


def test_two_columns_that_stand_still_may_be_used_and_free() -> None:
    with pytest.raises(ValueError, match="record with a header"):
        read_samples("2026/01/03 15:36:00.518, 5 MiB, 81554 MiB\n2026/01/03 15:36:01.518, 5 MiB, 81554 MiB\n")


def test_lines_of_a_log_are_no_rows() -> None:
    assert not is_samples("step 1, 17304 MiB\n2026-01-03 15:36:00, loss 3.2, 17304 MiB left\n")


def test_nvidia_smi_dmon_with_and_without_times() -> None:
    samples = rows(
        "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem     fb   bar1\n"
        "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %     MB     MB\n"
        " 20260103   15:36:56      0     71     34      -     50     25  17304      5\n"
        " 20260103   15:36:56      1      -     30      -      0      0      4      5\n"
    )
    assert samples[0] == {
        "line_no": 3,
        "gpu_index": 0,
        "ts": datetime(2026, 1, 3, 15, 36, 56),
        "mem_used_bytes": 17304 * MIB,
        "gpu_utilisation": 0.5,
        "mem_utilisation": 0.25,
        "power_w": 71.0,
        "temperature_c": 34.0,
    }
    assert samples[1]["power_w"] is None
    (row,) = rows("# gpu    sm   mem    fb\n# Idx     %     %    MB\n    3    99    40  100\n# gpu    sm   mem    fb\n")
    assert (row["gpu_index"], row["mem_used_bytes"], row["ts"]) == (3, 100 * MIB, None)


def test_labels_of_the_exporter_are_spelt_in_several_ways() -> None:
    text = (
        "# HELP DCGM_FI_DEV_FB_USED Framebuffer memory used (in MiB).\n"
        'DCGM_FI_DEV_FB_USED{GPU="2",UUID="GPU-a",device="nvidia2",modelName="H100",Hostname="n1"} 1.5e+03\n'
        'DCGM_FI_DEV_FB_USED{gpu="3",uuid="GPU-b",hostname="n1"} 10\n'
    )
    samples = rows(text)
    assert [(row["gpu_index"], row["gpu_uuid"], row["host"]) for row in samples] == [
        (2, "GPU-a", "n1"),
        (3, "GPU-b", "n1"),
    ]
    assert samples[0]["mem_used_bytes"] == 1500 * MIB


def test_a_table_with_names_of_dcgm_fields() -> None:
    (row,) = rows("timestamp,Hostname,gpu,DCGM_FI_DEV_FB_USED,DCGM_FI_DEV_GPU_UTIL\n2026-01-03 15:36:00,n1,2,512,50\n")
    assert (row["host"], row["gpu_index"], row["mem_used_bytes"], row["gpu_utilisation"]) == ("n1", 2, 512 * MIB, 0.5)


def test_processes_are_no_level_of_the_device() -> None:
    samples = rows(
        "timestamp, gpu_uuid, gpu_name, pid, name, used_gpu_memory [MiB]\n"
        f"2026/01/03 15:36:56.518, {UUID.format(0)}, NVIDIA H100 80GB HBM3, 1234, python, 17000 MiB\n"
        f"2026/01/03 15:36:56.518, {UUID.format(1)}, NVIDIA H100 80GB HBM3, 1235, python, [N/A]\n"
    )
    assert [(row["pid"], row["mem_process_bytes"]) for row in samples] == [(1234, 17_000 * MIB), (1235, None)]
    assert "mem_used_bytes" not in samples[0]
    assert samples[0]["accelerator"] == "NVIDIA H100 80GB HBM3"
    samples = rows(
        "# gpu         pid   type     fb   ccpm     sm    command\n"
        "# Idx           #    C/G     MB     MB      %    name\n"
        "    0      12345     C  17000      0     97    python train.py\n"
        "    1          -     -      -      -      -    -\n"
    )
    assert samples == [{"line_no": 3, "ts": None, "gpu_index": 0, "pid": 12345, "mem_process_bytes": 17_000 * MIB}]


def test_nvidia_smi_dmon_as_csv() -> None:
    (row,) = rows(
        "#Date, Time, gpu, pwr, gtemp, mtemp, sm, mem, fb, bar1\n#YYYYMMDD, HH:MM:SS, Idx, W, C, C, %, %, MB, MB\n"
        "20260103, 15:36:56, 0, 70, 30, -, 10, 2, 17304, 2\n"
    )
    assert (row["ts"], row["gpu_index"], row["mem_used_bytes"]) == (datetime(2026, 1, 3, 15, 36, 56), 0, 17304 * MIB)


def test_tables_of_amd_and_intel() -> None:
    (rocm,) = rows(
        "device,Temperature (Sensor edge) (C),GPU use (%),VRAM Total Memory (B),VRAM Total Used Memory (B),Card Series,"
        'Card Vendor\ncard1,34.0,97,21458059264,27856896,Radeon RX 7900 XT,"Advanced Micro Devices, Inc. [AMD/ATI]"\n\n'
    )
    assert rocm == {
        "line_no": 2,
        "gpu_index": 1,
        "temperature_c": 34.0,
        "gpu_utilisation": 0.97,
        "mem_used_bytes": 27_856_896,
        "mem_total_bytes": 21_458_059_264,
        "accelerator": "Radeon RX 7900 XT",
    }
    (amd,) = rows(
        "timestamp,gpu,power_usage,hotspot_temperature,gfx,gfx_clock,mem,mem_clock,vram_used,vram_total\n"
        "1746515289,3,150,45,97,1300,5,900,1024,196592\n"
    )
    assert (amd["gpu_index"], amd["mem_used_bytes"], amd["gpu_utilisation"]) == (3, 1024 * MIB, 0.97)
    (xpu,) = rows("Timestamp, DeviceId, GPU Utilization (%), GPU Memory Used (MiB)\n15:36:56.000, 2, 97.0, 17304.5\n")
    assert (xpu["gpu_index"], xpu["mem_used_bytes"], xpu["ts"]) == (2, round(17304.5 * MIB), None)


def test_tables_that_a_spreadsheet_saved() -> None:
    (row,) = rows("timestamp;index;memory.used [MiB];power.draw [W]\n03.01.2026 15:36:56;1;17304 MiB;350,12 W\n")
    assert (row["ts"], row["mem_used_bytes"], row["power_w"]) == (
        datetime(2026, 1, 3, 15, 36, 56),
        17304 * MIB,
        350.12,
    )
    (row,) = rows('index, memory.used [MiB], memory.total [MiB]\n0, "17,304 MiB", 81559 MiB\n')
    assert (row["mem_used_bytes"], row["mem_total_bytes"]) == (None, 81559 * MIB)  # thousands, or a decimal comma?


def test_a_pci_address_tells_gpus_apart_where_nothing_else_does() -> None:
    samples = rows("pci.bus_id, memory.used [MiB]\n00000000:07:00.0, 1 MiB\n00000000:0F:00.0, 2 MiB\n")
    assert [row["gpu_uuid"] for row in samples] == ["00000000:07:00.0", "00000000:0F:00.0"]
    (row,) = rows("index, pci.bus_id, memory.used [MiB]\n3, 00000000:07:00.0, 1 MiB\n")
    assert (row["gpu_index"], "gpu_uuid" in row) == (3, False)


def test_instances_of_a_divided_gpu_are_no_samples_of_the_whole() -> None:
    text = (
        'DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",GPU_I_PROFILE="1g.5gb",GPU_I_ID="7"} 10\n'
        'DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b"} 20\n'
    )
    assert [(row["gpu_index"], row["mem_used_bytes"]) for row in rows(text)] == [(1, 20 * MIB)]


def test_rows_without_a_header_whose_memory_is_in_use_and_free() -> None:
    """--query-gpu=timestamp,utilization.gpu,memory.used,memory.free and the same with free before used, noheader."""
    figures = [(0, 2, 20146), (97, 18000, 2147), (100, 18400, 1748), (0, 2, 20146)]
    stamp = "2026/04/25 16:06:06.780"
    used_first = rows("".join(f"{stamp}, {share} %, {used} MiB, {free} MiB\n" for share, used, free in figures))
    free_first = rows("".join(f"{stamp}, {share} %, {free} MiB, {used} MiB\n" for share, used, free in figures))
    assert used_first == free_first
    names = ("gpu_utilisation", "mem_used_bytes", "mem_free_bytes")
    assert [tuple(row[name] for name in names) for row in used_first] == [
        (share / 100, used * MIB, free * MIB) for share, used, free in figures
    ]


@pytest.mark.parametrize("shares", [(0, 0, 0), (50, 50, 50)])
def test_memory_without_a_header_stays_ambiguous_where_the_gpu_is_never_idle_or_always(
    shares: tuple[int, ...],
) -> None:
    memory = [(2, 20146), (18000, 2148), (18400, 1748)]
    text = "".join(f"{share} %, {one} MiB, {other} MiB\n" for share, (one, other) in zip(shares, memory, strict=True))
    with pytest.raises(ValueError, match="ambiguous; record with a header"):
        read_samples(text)


def test_a_scripts_names_say_gpu_before_or_behind() -> None:
    (row,) = rows(
        "timestamp,index_gpu,name,gpu_utilization,gpu_memory_used,gpu_memory_free,gpu_memory_total_mb,gpu_temperature\n"
        "2023-06-22 18:56:56,3,NVIDIA L4,22,841,7140,8192,51\n"
    )
    assert (row["gpu_index"], row["gpu_utilisation"], row["temperature_c"]) == (3, 0.22, 51)
    assert (row["mem_used_bytes"], row["mem_free_bytes"]) == (841 * MIB, 7140 * MIB)
    assert row["mem_total_bytes"] == 8192 * MIB
