"""`nvidia-smi -q` as text and as XML: the shape of docs.nvidia.com/deploy/nvidia-smi, made-up numbers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from sweepscope.pipeline.memory.gpu_samples.samples import is_samples, read_samples
from sweepscope.pipeline.memory.names import is_memory_file

MIB = 1 << 20


def rows(text: str) -> list[dict[str, Any]]:
    assert is_samples(text)
    frame, rejects = read_samples(text)
    assert not rejects
    return list(frame.iter_rows(named=True))


def listed(*lines: tuple[int, str, str | None]) -> str:
    """Lines as the tool writes them: depth of sections, name, value; None begins a section."""
    return "".join(
        " " * 4 * depth + (name if value is None else f"{name:{42 - 4 * depth}}: {value}") + "\n"
        for depth, name, value in lines
    )


def log(*gpus: str, attached: int | None = None, at: str = "Mon Mar  3 10:11:18 2025") -> str:
    head = listed((0, "Timestamp", at), (0, "Driver Version", "550.54"), (0, "CUDA Version", "12.4"))
    count = listed((0, "Attached GPUs", str(attached or len(gpus))))
    return f"\n==============NVSMI LOG==============\n\n{head}\n{count}" + "\n".join(gpus) + "\n"


def gpu(bus: str, used: str = "11900 MiB", *more: tuple[int, str, str | None]) -> str:
    return f"GPU 00000000:{bus}:00.0\n" + listed(
        (1, "Product Name", "NVIDIA H100"),
        (1, "GPU UUID", f"GPU-{bus}"),
        (1, "MIG Mode", None),
        (2, "Current", "N/A"),
        (1, "FB Memory Usage", None),
        (2, "Total", "81559 MiB"),
        (2, "Reserved", "316 MiB"),
        (2, "Used", used),
        (2, "Free", "69343 MiB"),
        (1, "BAR1 Memory Usage", None),
        (2, "Total", "131072 MiB"),
        (2, "Used", "1 MiB"),
        (2, "Free", "131071 MiB"),
        (1, "Utilization", None),
        (2, "Gpu", "97 %"),
        (2, "Memory", "41 %"),
        (2, "Encoder", "0 %"),
        (1, "Temperature", None),
        (2, "GPU Current Temp", "63 C"),
        (2, "Memory Current Temp", "70 C"),
        (1, "GPU Power Readings", None),
        (2, "Average Power Draw", "N/A"),
        (2, "Instantaneous Power Draw", "299.31 W"),
        (2, "Current Power Limit", "700.00 W"),
        (1, "GPU Memory Power Readings", None),
        (2, "Average Power Draw", "99.00 W"),
        (1, "Clocks", None),
        (2, "Memory", "2619 MHz"),
        *more,
    )


def test_each_gpu_is_a_row() -> None:
    first, second = rows(log(gpu("04"), gpu("81", "0 MiB", (1, "Processes", "None"))))
    assert first == {
        "line_no": 9,
        "ts": datetime(2025, 3, 3, 10, 11, 18),
        "gpu_index": 0,
        "accelerator": "NVIDIA H100",
        "gpu_uuid": "GPU-04",
        "mem_total_bytes": 81559 * MIB,
        "mem_driver_reserved_bytes": 316 * MIB,
        "mem_used_bytes": 11900 * MIB,
        "mem_free_bytes": 69343 * MIB,
        "gpu_utilisation": 0.97,
        "mem_utilisation": 0.41,
        "temperature_c": 63.0,
        "power_w": 299.31,
    }
    assert (second["gpu_index"], second["gpu_uuid"], second["mem_used_bytes"]) == (1, "GPU-81", 0)


def test_each_process_is_a_row() -> None:
    process = (
        (1, "Processes", None),
        (2, "GPU instance ID", "N/A"),
        (2, "Process ID", "4711"),
        (3, "Type", "C"),
        (3, "Name", "/usr/bin/python3"),
        (3, "Used GPU Memory", "11890 MiB"),
        (2, "Process ID", "4712"),
        (3, "Used GPU Memory", "Not available in WDDM driver model"),
    )
    samples = rows(log(gpu("04", "11900 MiB", *process), gpu("81")))
    assert [(row["gpu_index"], row.get("pid"), row.get("mem_process_bytes")) for row in samples] == [
        (0, None, None),
        (0, 4711, 11890 * MIB),
        (0, 4712, None),
        (1, None, None),
    ]
    assert [(row["gpu_uuid"], row["accelerator"]) for row in samples] == [("GPU-04", "NVIDIA H100")] * 3 + [
        ("GPU-81", "NVIDIA H100")
    ]


def test_parts_again_and_again() -> None:
    part = "GPU 00000000:04:00.0\n" + listed((1, "FB Memory Usage", None), (2, "Used", "5 MiB"))
    samples = rows(log(part) + log(part.replace("5 MiB", "6 MiB"), at="Mon Mar  3 10:11:28 2025"))
    assert [(row["ts"].second, row["gpu_index"], row["mem_used_bytes"]) for row in samples] == [
        (18, 0, 5 * MIB),
        (28, 0, 6 * MIB),
    ]


def test_one_of_several_gpus_has_no_index() -> None:
    (row,) = rows(log(gpu("81"), attached=8))
    assert (row["gpu_index"], row["gpu_uuid"]) == (None, "GPU-81")


def test_memory_of_mig_devices_is_not_the_gpus() -> None:
    device = (
        (1, "MIG Device", None),
        (2, "Index", "0"),
        (2, "FB Memory Usage", None),
        (3, "Total", "40448 MiB"),
        (3, "Used", "44 MiB"),
    )
    part = listed((1, "Product Name", "NVIDIA H100"), *device, (1, "FB Memory Usage", None), (2, "Used", "175 MiB"))
    (row,) = rows(log("GPU 00000000:04:00.0\n" + part))
    assert row["mem_used_bytes"] == 175 * MIB


def test_a_part_without_a_sample_says_so() -> None:
    with pytest.raises(ValueError, match="no sample"):
        rows(log("GPU 00000000:04:00.0\n" + listed((1, "Compute Mode", "Default"))))


XML = """\
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
\t<timestamp>Mon Mar  3 10:11:18 2025</timestamp>
\t<attached_gpus>1</attached_gpus>
\t<gpu id="00000000:04:00.0">
\t\t<product_name>NVIDIA H100</product_name>
\t\t<mig_devices>
\t\t\t<mig_device>
\t\t\t\t<fb_memory_usage>
\t\t\t\t\t<used>44 MiB</used>
\t\t\t\t</fb_memory_usage>
\t\t\t</mig_device>
\t\t</mig_devices>
\t\t<uuid>GPU-04</uuid>
\t\t<fb_memory_usage>
\t\t\t<total>81559 MiB</total>
\t\t\t<reserved>316 MiB</reserved>
\t\t\t<used>11900 MiB</used>
\t\t\t<free>69343 MiB</free>
\t\t</fb_memory_usage>
\t\t<bar1_memory_usage>
\t\t\t<used>1 MiB</used>
\t\t</bar1_memory_usage>
\t\t<utilization>
\t\t\t<gpu_util>97 %</gpu_util>
\t\t\t<memory_util>41 %</memory_util>
\t\t</utilization>
\t\t<temperature>
\t\t\t<gpu_temp>63 C</gpu_temp>
\t\t</temperature>
\t\t<gpu_power_readings>
\t\t\t<power_draw>299.31 W</power_draw>
\t\t</gpu_power_readings>
\t\t<processes>
\t\t\t<process_info>
\t\t\t\t<pid>4711</pid>
\t\t\t\t<process_name>python3</process_name>
\t\t\t\t<used_memory>11890 MiB</used_memory>
\t\t\t</process_info>
\t\t</processes>
\t</gpu>
</nvidia_smi_log>
"""


def test_xml_says_the_same() -> None:
    samples = rows(XML + XML.replace("11900", "11901"))
    assert samples[0] | {"line_no": 0} == {
        "line_no": 0,
        "ts": datetime(2025, 3, 3, 10, 11, 18),
        "gpu_index": 0,
        "accelerator": "NVIDIA H100",
        "gpu_uuid": "GPU-04",
        "mem_total_bytes": 81559 * MIB,
        "mem_driver_reserved_bytes": 316 * MIB,
        "mem_used_bytes": 11900 * MIB,
        "mem_free_bytes": 69343 * MIB,
        "gpu_utilisation": 0.97,
        "mem_utilisation": 0.41,
        "temperature_c": 63.0,
        "power_w": 299.31,
        "pid": None,
        "mem_process_bytes": None,
    }
    assert [(row["pid"], row["mem_process_bytes"]) for row in samples[1::2]] == [(4711, 11890 * MIB)] * 2
    assert samples[2]["mem_used_bytes"] == 11901 * MIB
    assert is_memory_file("nvidia-smi_q.xml")


def test_xml_texts_are_unescaped_and_attributes_and_comments_are_no_values() -> None:
    text = XML.replace("NVIDIA H100", "A&amp;B &#60;C&gt;").replace(
        "\t\t<uuid>",
        '\t\t<!-- <uuid>GPU-no</uuid> -->\n\t\t<uuid kind="&lt;uuid&gt;GPU-no">',
    )
    gpu, _process = rows(text)
    assert (gpu["accelerator"], gpu["gpu_uuid"]) == ("A&B <C>", "GPU-04")


def test_a_bare_ampersand_in_a_process_name_damages_nothing() -> None:
    assert rows(XML.replace("python3", "a && b & c")) == rows(XML)


def test_each_xml_row_has_its_line() -> None:
    samples = rows("monitor started\n" + XML + "\n" + XML.replace("\n", " "))
    assert [row["line_no"] for row in samples] == [7, 38, 46, 46]


def test_xml_that_is_cut_off_gives_what_it_has_and_is_a_reject() -> None:
    cut = XML[: XML.index("<free>") + 3]
    frame, rejects = read_samples(cut + "\n" + XML)
    assert frame["mem_used_bytes"].drop_nulls().to_list() == [11900 * MIB] * 2
    ((line_no, reason, raw),) = rejects
    assert (line_no, reason, raw) == (20, "XML that is cut off or damaged", "\t\t\t<fr")


BOMB = """<!DOCTYPE nvidia_smi_log [
<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">
]>
"""


def test_entities_are_neither_expanded_nor_fetched() -> None:
    named = XML.replace("NVIDIA H100", "&b;&c;")
    for text in (
        BOMB + named[named.index("<nvidia_smi_log>") :],
        named.replace("<nvidia_smi_log>", BOMB + "<nvidia_smi_log>"),
    ):
        gpu, _process = rows(text)
        assert gpu["accelerator"] == "&b;&c;"


@pytest.mark.timeout(10)
def test_nesting_without_end_costs_nothing() -> None:
    text = XML.replace("<processes>", "<processes>" + "<a>" * 200_000 + "x" * 1_000_000)
    frame, rejects = read_samples(text)
    assert (frame.height, len(rejects)) == (1, 1)


@pytest.mark.timeout(10)
def test_a_long_line_costs_nothing() -> None:
    text = log(gpu("04")) + "    a" + " " * 1_000_000 + "b\n" + "<x>" * 300_000 + "\n"
    assert len(rows(text)) == 1
