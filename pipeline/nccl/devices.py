"""Network devices that NCCL found on a host (src/transport/net_ib.cc, net_socket.cc; the IBext and OFI plugins).

    NET/IB : Using [0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
    NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} [RO]; OOB ...      several ports as one device (2.21 on)
    NET/Socket : Using [0]eth0:10.0.0.1<0> [1]eth1:10.0.1.1<0>
    NET/IB : No device found.
    NET/OFI Selected Provider is efa (found 4 nics)

The number in brackets is the one that `via NET/IB/3` names. Every rank prints the list; one of each host is kept.
"""

from __future__ import annotations

import re

import polars as pl

from pipeline.nccl.facts import Notes
from pipeline.nccl.messages import Message

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
_Device = tuple[int | str | None, str | None, str | None, str | None]  # number, name, port, layer
_NONE: _Device = (None, None, None, None)
_DEVICE = re.compile(f"{_MERGED}|{_IB}|{_SOCKET}")


def read_devices(message: Message, line_no: int, notes: Notes) -> bool:
    """A list of devices, or that there is none. The last one of a text that was cut is left out."""
    if provider := _PROVIDER.match(message.text):
        for number in range(int(provider["count"])) if provider["count"] else (None,):
            _add(notes, line_no, message, "OFI", (number, provider["name"], None, None))
        return True
    found = _USING.match(message.text)
    if found is None:
        return False
    network = found["network"]
    if found["none"]:
        _add(notes, line_no, message, network, _NONE)
        return True
    # "[RO]" alone: no device. What follows the semicolon is the interface of the bootstrap.
    listed = found["devices"].split(";", 1)[0]
    is_whole = not message.is_cut and (network == "Socket" or ";" in found["devices"])
    devices = list(_DEVICE.finditer(listed))
    if not devices and is_whole:
        _add(notes, line_no, message, network, _NONE)
    for device in devices if is_whole else devices[:-1]:
        _add(notes, line_no, message, network, _told(device))
    return True


def _told(device: re.Match[str]) -> _Device:
    """Number, name, ports and link layer of one device."""
    if device["number"]:
        parts = list(_PART.finditer(device["parts"]))
        layers = sorted({part["layer"] for part in parts})
        return (
            device["number"], "+".join(part["name"] for part in parts) or device["parts"][:80],
            "+".join(part["port"] for part in parts) or None, "+".join(layers) or "RoCE",
        )  # fmt: skip
    if device["ib"]:
        return device["ib"], device["ib_name"], device["port"], f"{device['layer']}{device['sharp'] or ''}"
    return device["socket"], device["socket_name"], device["address"], "Ethernet"


def _add(notes: Notes, line_no: int, message: Message, network: str, device: _Device) -> None:
    number, name, port, layer = device
    place = None if number is None else int(number)
    notes.count("device", line_no, message.host, message.pid, network, place, name, port, layer)


def device_rows(devices: pl.DataFrame) -> pl.DataFrame:
    """The fold: rows of `nccl_devices` by `source`, the first line of each device of each host."""
    return (
        devices.sort("source", "line_no", maintain_order=True)
        .group_by("source", "host", "network", "number", "name", maintain_order=True)
        .agg(pl.col("port", "layer").first(), pl.col("line_no").min())
        .rename({"network": "net_kind", "number": "net_device", "name": "device_name", "port": "device_port",
                 "layer": "link_layer"})
    )  # fmt: skip
