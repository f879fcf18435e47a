"""Network devices that NCCL found on a host (src/transport/net_ib.cc, net_socket.cc; the IBext and OFI plugins).

    NET/IB : Using [0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
    NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} [RO]; OOB ...      several ports as one device (2.21 on)
    NET/Socket : Using [0]eth0:10.0.0.1<0> [1]eth1:10.0.1.1<0>        so Google's NET/FastSocket
    NET/IB : No device found.
    NET/OFI Selected Provider is efa (found 4 nics)

The number in brackets is the one that `via NET/IB/3` names. Every rank prints the list; one of each host is kept.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.facts import SCHEMAS, Notes
from sweepscope.pipeline.nccl.lines.distinct_lines import Lines
from sweepscope.pipeline.nccl.lines.messages import Message

WORD = "NET/"
TELLING = r"^NET/\w+ ?: (?:Using \[|No device found)|^NET/OFI Selected "
"""What distinguishes such lines from the many others of the network, for polars."""
_USING = re.compile(r"NET/(?P<network>\w+) ?: (?:Using (?P<devices>\[.*)|(?P<none>No device found))")
_PROVIDER = re.compile(
    r"NET/OFI Selected [Pp]rovider is (?P<name>[\w;]+)"
    r"(?:, fabric is [\w;-]+)?(?: \(found (?P<count>\d{1,3}) nics?\))?"
)
_MERGED = r"\[(?P<number>\d{1,4})\]=\{(?P<parts>[^{}]+)\}"
_PART = re.compile(r"\[\d{1,4}\] (?P<name>[\w.-]+):(?P<port>\d{1,3})/(?P<layer>IB|RoCE)")
_IB = r"\[(?P<ib>\d{1,4})\](?P<ib_name>[\w.-]+):(?P<port>\d{1,3})/(?P<layer>IB|RoCE)(?P<sharp>/SHARP)?(?= |;|\Z)"
_SOCKET = r"\[(?P<socket>\d{1,4})\](?P<socket_name>[\w.@-]+):(?P<address>[^\s<>]+)<\d+>"
_Device = tuple[str, int | None, str | None, str | None, str | None]  # network, number, name, port, layer
_DEVICE = re.compile(f"{_MERGED}|{_IB}|{_SOCKET}")


def read_devices(message: Message, line_no: int, notes: Notes) -> bool:
    """A list of devices, or that there is none."""
    devices = devices_of(message.text, is_cut=message.is_cut)
    for device in devices or ():
        notes.add("device", line_no, message.host, message.pid, *device, 1)
    return devices is not None


def read_lists(lines: Lines, notes: Notes) -> np.ndarray:
    """Whole columns of lines; says which of their texts tell nothing."""
    may_be_list = np.flatnonzero(lines.texts.str.contains(TELLING).to_numpy())
    found = {told: devices_of(lines.texts[told], is_cut=False) for told in may_be_list.tolist()}
    devices = pl.DataFrame(
        [(told, *device) for told, listed in found.items() for device in listed or ()],
        schema={"told": pl.UInt32, **dict(list(SCHEMAS["device"].items())[4:-1])},
        orient="row",
    )
    rows = lines.rows.join(devices.select("told").unique(), on="told", how="semi")
    alike = rows.group_by("who", "told").agg(pl.col("line_no").min(), lines=pl.len())
    told = alike.with_columns(lines.threads[alike["who"]].select("source", "host", "pid").get_columns())
    notes.add_frame("device", told.join(devices, on="told"))
    return ~np.isin(np.arange(len(lines.texts)), [told for told, listed in found.items() if listed is not None])


def devices_of(text: str, *, is_cut: bool) -> list[_Device] | None:
    """What a list says; None for another text. The last device of a text that was cut is left out."""
    if provider := _PROVIDER.match(text):
        numbers = range(int(provider["count"])) if provider["count"] else (None,)
        return [("OFI", number, provider["name"], None, None) for number in numbers]
    found = _USING.match(text)
    if found is None:
        return None
    network = found["network"]
    none: list[_Device] = [(network, None, None, None, None)]
    if found["none"]:
        return none
    # "[RO]" alone: no device. What follows the semicolon is the interface of the bootstrap.
    listed = found["devices"].split(";", 1)[0]
    is_whole = not is_cut and (network.endswith("Socket") or ";" in found["devices"])
    devices: list[_Device] = [(network, *_told(device)) for device in _DEVICE.finditer(listed)]
    if not devices and is_whole:
        return none
    return devices if is_whole else devices[:-1]


def _told(device: re.Match[str]) -> tuple[int, str, str | None, str]:
    """Number, name, ports and link layer of one device."""
    if device["number"]:
        parts = list(_PART.finditer(device["parts"]))
        layers = sorted({part["layer"] for part in parts})
        return (
            int(device["number"]),
            "+".join(part["name"] for part in parts) or device["parts"][:80],
            "+".join(part["port"] for part in parts) or None,
            "+".join(layers) or "RoCE",
        )
    if device["ib"]:
        return int(device["ib"]), device["ib_name"], device["port"], f"{device['layer']}{device['sharp'] or ''}"
    return int(device["socket"]), device["socket_name"], device["address"], "Ethernet"


def device_rows(devices: pl.DataFrame) -> pl.DataFrame:
    """The fold: rows of `nccl_devices` by `source`, the first line of each device of each host."""
    return (
        devices.sort("source", "line_no", maintain_order=True)
        .group_by("source", "host", "network", "number", "name", maintain_order=True)
        .agg(pl.col("port", "layer").first(), pl.col("line_no").min())
        .rename(
            {
                "network": "net_kind",
                "number": "net_device",
                "name": "device_name",
                "port": "device_port",
                "layer": "link_layer",
            }
        )
    )
