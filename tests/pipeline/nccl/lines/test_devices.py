"""Lists of network devices, as NCCL and its plugins print them."""

from __future__ import annotations

import pytest

from tests.pipeline.nccl.reading import tables_of

Device = tuple[str, int | None, str | None, str | None, str | None]


def devices(*texts: str) -> list[Device]:
    lines = "".join(f"n1:100:200 [0] NCCL INFO {text}\n" for text in texts)
    rows = tables_of(lines)["nccl_devices"].sort("line_no", "net_device")
    return list(rows.select("net_kind", "net_device", "device_name", "device_port", "link_layer").iter_rows())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
            [("IB", 0, "mlx5_0", "1", "IB"), ("IB", 1, "mlx5_1", "1", "RoCE")],
        ),
        (
            "NET/FastSocket : Using [0]enp0s12:10.0.0.6<0> [1]enp6s0f0:10.0.1.4<0>",
            [
                ("FastSocket", 0, "enp0s12", "10.0.0.6", "Ethernet"),
                ("FastSocket", 1, "enp6s0f0", "10.0.1.4", "Ethernet"),
            ],
        ),
        ("NET/IB : Using [0]hfi1_2:1/IB ; OOB ib0:10.148.8.41<0>", [("IB", 0, "hfi1_2", "1", "IB")]),
        (
            "NET/IB : Using [0]mlx5_ib0:1/IB/SHARP ; OOB eth0:10.35.4.13<0>",
            [("IB", 0, "mlx5_ib0", "1", "IB/SHARP")],
        ),
        (
            "NET/IB : Using [0]={[0] rocep1s0f0:1/RoCE, [1] rocep1s0f1:1/RoCE} [1]mlx5_4:2/IB [RO]; OOB eth0:10.0.0.1<0>",
            [("IB", 0, "rocep1s0f0+rocep1s0f1", "1+1", "RoCE"), ("IB", 1, "mlx5_4", "2", "IB")],
        ),
        ("NET/IB : Using [RO]; OOB eth0:172.17.0.3<0>", [("IB", None, None, None, None)]),
        ("NET/IB : No device found.", [("IB", None, None, None, None)]),
        (
            "NET/Socket : Using [0]eth0:10.0.0.1<0> [1]tail0:fe80::56c4:f535%tail0<0>",
            [
                ("Socket", 0, "eth0", "10.0.0.1", "Ethernet"),
                ("Socket", 1, "tail0", "fe80::56c4:f535%tail0", "Ethernet"),
            ],
        ),
        (
            "NET/OFI Selected Provider is efa (found 2 nics)",
            [("OFI", 0, "efa", None, None), ("OFI", 1, "efa", None, None)],
        ),
        ("NET/OFI Selected provider is efa, fabric is efa-direct (found 1 nics)", [("OFI", 0, "efa", None, None)]),
        ("NET/OFI Selected Provider is efa", [("OFI", None, "efa", None, None)]),
        ("NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'", []),
    ],
)
def test_every_list(text: str, found: list[Device]) -> None:
    assert devices(text) == found


def test_a_list_that_was_cut_gives_what_is_whole() -> None:
    text = "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_1"
    assert devices(text) == [("IB", 0, "mlx5_0", "1", "IB")]


def test_what_every_rank_prints_is_one_row_per_host() -> None:
    line = "{host}:{pid}:7 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB eth0:10.0.0.1<0>\n"
    text = "".join(line.format(host=host, pid=pid) for host, pid in (("n1", 1), ("n1", 2), ("n2", 3)))
    rows = tables_of(text)["nccl_devices"]
    assert list(rows.select("host", "line_no").iter_rows()) == [("n1", 1), ("n2", 3)]
