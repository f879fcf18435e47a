"""Versions of parsers follow their source, and what no parser knew is read again when there is one more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from sweepscope.pipeline.ingest import dialect_files, parser_versions
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.logs.registry import DIALECTS, TABLES, by_name
from sweepscope.pipeline.memory.names import PARSERS
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.published import current
from tests.pipeline.logs.runs.test_assemble import log


def change_source(monkeypatch: pytest.MonkeyPatch, *paths: str) -> None:
    """As after an upgrade that changed those modules of the pipeline."""
    sources = dict(parser_versions._pipeline())
    for path in paths:
        digest, text = sources[path]
        sources[path] = (f"{digest} and more", text)
    monkeypatch.setattr(parser_versions, "_pipeline", lambda: sources)


def changed_by(monkeypatch: pytest.MonkeyPatch, path: str) -> set[str]:
    before = current_versions()
    change_source(monkeypatch, path)
    after = current_versions()
    assert before.keys() == after.keys()
    return {name for name in before if before[name] != after[name]}


def test_every_parser_has_a_version_and_so_has_the_lack_of_one() -> None:
    versions = current_versions()
    names = {"", "nccl", "scheduler", "inferred", *PARSERS, *(d.name for d in DIALECTS), *(t.name for t in TABLES)}
    assert set(versions) == names
    assert all(0 < version < 2**53 for version in versions.values())


def test_versions_are_the_same_when_they_are_computed_again() -> None:
    before = current_versions()
    parser_versions._pipeline.cache_clear()
    assert current_versions() == before


def test_line_ends_of_a_checkout_do_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    digests = []
    for name, end in (("unix", b"\n"), ("windows", b"\r\n")):
        (tmp_path / name / "io").mkdir(parents=True)
        for module in ("text_encoding.py", "log_envelopes.py", "terminal_lines.py"):
            (tmp_path / name / "io" / module).write_bytes(b"x = 1" + end)
        monkeypatch.setattr(parser_versions, "files", lambda _, root=tmp_path / name: root)
        digests.append(parser_versions._pipeline.__wrapped__()["io/text_encoding.py"])
    assert digests[0] == digests[1]


def test_one_more_dialect_changes_the_version_of_unknown_files_only() -> None:
    more = replace(by_name("picotron"), name="new-trainer")
    before, after = current_versions(), current_versions([*DIALECTS, more])
    assert {name for name in before if before[name] != after[name]} == {"", "inferred"}


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("logs/dialects/picotron.py", {"picotron"}),
        ("logs/dialects/deepspeed/settings.py", {"deepspeed", "megatron-deepspeed", "gpt-neox", "hf-trainer"}),
        ("logs/dialects/nanotron_bench.py", {TABLES[0].name}),
        ("logs/registry.py", set()),
        ("memory/gpu_samples/samples.py", set(PARSERS)),
        ("scheduler/slurm_sacct.py", {"scheduler"}),
    ],
)
def test_a_changed_module_changes_the_versions_of_those_that_use_it(
    path: str, names: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = changed_by(monkeypatch, path)
    assert changed >= ({*names, ""} if names else set())
    assert changed & {"nanotron", "picotron", "nccl", "scheduler", *PARSERS} <= names


def test_dialects_change_with_what_reads_every_log(monkeypatch: pytest.MonkeyPatch) -> None:
    dialects = {dialect.name for dialect in DIALECTS}
    for path in ("logs/engine/extract.py", "logs/runs/assemble.py", "logs/extractors.py", "nccl/lines/scan.py"):
        with monkeypatch.context() as patch:
            changed = changed_by(patch, path)
            assert changed >= {"", "nccl", *dialects}, path
            assert not changed & {"scheduler", *PARSERS}, path


def test_every_dialect_names_the_module_that_states_it() -> None:
    for dialect in DIALECTS:
        found = parser_versions._modules_of(dialect.module)
        assert f"{dialect.module.removeprefix('sweepscope.pipeline.').replace('.', '/')}.py" in found, dialect.name


def test_claims_and_revisions_of_declared_dialects_change_versions() -> None:
    own = replace(DIALECTS[0], name="acme", revision=5)
    before = current_versions([own, *DIALECTS])
    edited = current_versions([replace(own, revision=6), *DIALECTS])
    assert {name for name in before if before[name] != edited[name]} == {"acme", "", "inferred"}
    claimed = current_versions([replace(own, claims=1), *(replace(d, claims=1) for d in DIALECTS)])
    assert all(before[name] != claimed[name] for name in ("", "acme", "nccl", *(d.name for d in DIALECTS)))


@pytest.mark.usefixtures("few_views")
def test_a_log_that_no_dialect_knew_is_read_again_after_an_upgrade_that_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "train.log").write_text(log(1, 5))
    older = tuple(dialect for dialect in DIALECTS if dialect.name != "picotron")

    def ingest() -> int:
        return ingest_paths(home, [str(tmp_path / "sweep")], with_published=False).files_new

    def steps() -> list[tuple[str | None, int]]:
        with duckdb.connect(str(current(home.path)), read_only=True) as con:
            return con.execute("select any_value(parser), (select count(*) from steps) from files").fetchall()

    with monkeypatch.context() as patch:
        patch.setattr(dialect_files, "DIALECTS", older)
        assert ingest() == 1
        assert ingest() == 0
        assert steps() == [("inferred", 5)]
    assert ingest() == 1
    assert steps() == [("picotron", 5)]
    assert ingest() == 0
