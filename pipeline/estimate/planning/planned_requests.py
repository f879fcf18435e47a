"""Rows of `planned_runs` as questions again: the cell of a planned run, and its position in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.estimate.rows.asking import ChooseProfile, question_on
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.whatif import Choice
from sweepscope.pipeline.reference.clusters import Precision, find_cluster, with_network
from sweepscope.pipeline.reference.models import shape_of


def request_of(row: Mapping[str, Any], choose: ChooseProfile, described: Mapping[str, Any] | None = None) -> Request:
    """The question that a planned run answers. Raises InputError for an accelerator that is not known any more.

    `described`: the row of `clusters` that it was planned for; its links and network, else the accelerator's usual.
    """
    on = described or {}
    cluster = find_cluster(
        row["accelerator"], gpus_per_node=row["gpus_per_node"], gpus_per_domain=on.get("gpus_per_domain")
    )
    if cluster is None:
        raise InputError(
            f"{row['planned_run_id']} is planned for {row['accelerator']}, which is unknown. Plan it again."
        )
    if on.get("nic_gbit_per_s"):
        cluster = with_network(cluster, on["nic_gbit_per_s"] * on["nics_per_node"] / on["gpus_per_node"])
    # Plans of versions that kept no precision are in 16 bit.
    precision: Precision = row["precision"] or "bf16"
    shape = shape_of(dict(row))
    asked = question_on(cluster, shape, row["seq_len"], precision, choose=choose, framework=row["framework"])
    return Request(asked, num_gpus=row["num_gpus"], gbs=row["gbs"])


def choice_of(row: Mapping[str, Any]) -> Choice:
    """The layout of a planned run."""
    return Choice.of(row)
