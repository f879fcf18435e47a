"""Network devices that NCCL found on a host (src/transport/net_ib.cc, net_socket.cc; the IBext and OFI plugins).

    NET/IB : Using [0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
    NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} [RO]; OOB ...      several ports as one device (2.21 on)
    NET/Socket : Using [0]eth0:10.0.0.1<0> [1]eth1:10.0.1.1<0>        so Google's NET/FastSocket
    NET/IB : No device found.
    NET/OFI Selected Provider is efa (found 4 nics)

`via NET/IB/3` refers to the number in brackets. Every rank prints the list; one of each host is kept.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.facts import SCHEMAS, Notes
from sweepscope.pipeline.nccl.lines.info_lines import InfoLines

WORD = "NET/"
_IS_LIST = r"^NET/\w+ ?: (?:Using \[|No device found)|^NET/OFI Selected "
"""A pattern of polars that such lines match, unlike the many others of the network."""
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


def read_lists(lines: InfoLines, notes: Notes) -> np.ndarray:
    """`device` facts of lists of devices, or that there is none; returns a mask of the texts that were understood."""
    may_be_list = np.flatnonzero(lines.texts.str.contains(_IS_LIST).to_numpy())
    found = {at: devices_of(lines.texts[at], is_cut=bool(lines.is_cut[at])) for at in may_be_list.tolist()}
    devices = pl.DataFrame(
        [(text_id, *device) for text_id, listed in found.items() for device in listed or ()],
        schema={"text_id": pl.UInt32, **dict(list(SCHEMAS["device"].items())[4:-1])},
        orient="row",
    )
    rows = lines.rows.join(devices.select("text_id").unique(), on="text_id", how="semi")
    counted = rows.group_by("prefix_id", "text_id").agg(pl.col("line_no").min(), lines=pl.len())
    notes.add_frame("device", lines.with_prefix(counted, "source", "host", "pid").join(devices, on="text_id"))
    return np.isin(np.arange(len(lines.texts)), [text_id for text_id, listed in found.items() if listed is not None])


def devices_of(text: str, *, is_cut: bool) -> list[_Device] | None:
    """The devices of a list; None for another text. The last device of a text that was cut is left out."""
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
    devices: list[_Device] = [(network, *_fields(device)) for device in _DEVICE.finditer(listed)]
    if not devices and is_whole:
        return none
    return devices if is_whole else devices[:-1]


def _fields(device: re.Match[str]) -> tuple[int, str, str | None, str]:
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
