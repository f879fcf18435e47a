"""What is written for a framework is read back as the same layout, by the readers that an ingest uses."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.ingest.file_kinds import file_kind
from sweepscope.pipeline.ingest.read_configuration import settings_beside
from sweepscope.pipeline.launch.framework import Framework
from sweepscope.pipeline.launch.frameworks.megatron import argument_lines
from sweepscope.pipeline.launch.frameworks.torchtitan import CONFIG, OPTIONS
from sweepscope.pipeline.launch.jobs import launch_files
from sweepscope.pipeline.launch.registry import FRAMEWORKS
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.logs.runs.settings import conclude
from sweepscope.pipeline.logs.sidecars.documents import is_script
from tests.pipeline.launch.planned import EXPERTS, planned, row_of, runs_of

LAYOUT = ("dp", "tp", "pp", "cp", "ep", "vpp", "mbs", "gas", "gbs", "zero_stage", "dp_replicate", "recompute")
"""What may be read besides what a framework's files have to state; it must be the same, too."""


def read_back(framework: Framework, files: Mapping[str, str]) -> dict[str, str]:
    """Columns of `runs` from the files of a run's directory, with what the dialect concludes from them."""
    found: dict[str, str] = {}
    for name, text in files.items():
        if file_kind(name) == "config" and not is_script(name):  # scripts state what is launched, and no layout
            found |= settings_beside(f"/run/{name}", text, DIALECTS)[1]
    dialect = next(one for one in DIALECTS if one.name == framework.framework)
    rows = [
        {"run_id": "r", "name": name, "value": value, "setting_source": "config_file", "source_path": "/c"}
        for name, value in found.items()
    ]
    settings = pl.DataFrame(rows, schema_overrides={"value": pl.String}).with_columns(line_no=pl.lit(None, pl.Int64))
    concluded = conclude(settings, dialect.combined) if dialect.combined else settings.clear()
    return {**dict(concluded.select("name", "value").iter_rows()), **found}


def as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_layout_is_read_back_as_it_was_written(name: str) -> None:
    framework = FRAMEWORKS[name]

    @given(st.data())
    def check(data: st.DataObject) -> None:
        run = data.draw(runs_of(framework))
        found = read_back(framework, launch_files(run, framework))
        wanted = {column: as_text(value) for column, value in row_of(run).items()}
        assert {column: found.get(column) for column in framework.states} == {
            column: wanted[column] for column in framework.states
        }
        others = {column: found[column] for column in LAYOUT if column in found}
        if run.pp > 1 and name == "torchtitan":
            others.pop("mbs")  # what it prints and states is the batch of a rank, before a pipeline cuts it
        if not run.is_sharded:
            others.pop("dp_replicate", None)
        assert others == {column: wanted[column] for column in others}

    check()


@pytest.mark.parametrize("file", [CONFIG, OPTIONS])
def test_either_file_of_torchtitan_states_the_layout(file: str) -> None:
    """The TOML and the options are of different versions, and a run directory may have one of them alone."""
    torchtitan = FRAMEWORKS["torchtitan"]

    @given(st.data())
    def check(data: st.DataObject) -> None:
        run = data.draw(runs_of(torchtitan))
        found = read_back(torchtitan, {file: launch_files(run, torchtitan)[file]})
        wanted = {column: as_text(value) for column, value in row_of(run).items()}
        assert {column: found.get(column) for column in torchtitan.states} == {
            column: wanted[column] for column in torchtitan.states
        }
        assert found["model"] == "llama3 8B"

    check()


@pytest.mark.parametrize("name", ["megatron", "megatron-bridge"])
def test_experts_are_read_back(name: str) -> None:
    run = planned(model=EXPERTS, ep=2)
    found = read_back(FRAMEWORKS[name], launch_files(run, FRAMEWORKS[name]))
    assert (found["num_experts"], found["experts_per_token"], found["ep"]) == ("8", "2", "2")


def test_megatrons_products_are_in_the_planned_precision() -> None:
    short, wide = (argument_lines(planned(precision=precision)) for precision in ("fp8", None))
    assert set(short) - set(wide) == {"--fp8-format hybrid"}


def test_interleaving_is_read_back() -> None:
    run = planned(pp=2, dp=4, vpp=2, pipeline_schedule="interleaved")
    for name in ("megatron", "megatron-bridge"):
        assert read_back(FRAMEWORKS[name], launch_files(run, FRAMEWORKS[name]))["vpp"] == "2"
