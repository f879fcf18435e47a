"""Imports point one way: schemas <- pipeline <- orchestration and commands; the dashboard reads the store only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("schemas", "pipeline", "dashboard", "data", "tests")

DASHBOARD_MAY_IMPORT = ("schemas", "dashboard", "pipeline.store.published", "pipeline.errors", "pipeline.estimate")
FOREIGN_TO_PARSERS = (
    "duckdb",
    "dagster",
    "streamlit",
    "plotly",
    "deltalake",
    "fsspec",
    "pathlib",
    "os",
    "subprocess",
)


def imports(path: Path) -> Iterator[str]:
    """Dotted names that a module imports, `from a import b` as `a.b`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules(package: str, *, without: tuple[str, ...] = ()) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    return [path for path in found if not any((ROOT / skip) in path.parents for skip in without)]


def is_within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def offences(paths: list[Path], allowed: tuple[str, ...]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in paths
        for name in imports(path)
        if name.split(".")[0] in OURS and not is_within(name, allowed)
    ]


def test_schemas_import_nothing_of_ours() -> None:
    assert not offences(modules("schemas"), ("schemas",))


def test_the_pipeline_never_imports_the_dashboard() -> None:
    assert not offences(modules("pipeline"), ("schemas", "pipeline", "data"))


def test_the_pipelines_core_knows_no_dagster_and_no_command() -> None:
    core = modules("pipeline", without=("pipeline/orchestration", "pipeline/commands"))
    core = [path for path in core if path.name != "__main__.py"]
    found = [(path, name) for path in core for name in imports(path)]
    assert not [
        f"{p} imports {n}" for p, n in found if is_within(n, ("dagster", "pipeline.orchestration", "pipeline.commands"))
    ]


def test_parsers_touch_no_file_store_or_framework() -> None:
    found = [(path.name, name) for path in modules("pipeline/logs") for name in imports(path)]
    assert not [f"{path} imports {name}" for path, name in found if is_within(name, FOREIGN_TO_PARSERS)]


def test_the_dashboard_reads_the_published_store_only() -> None:
    assert not offences(modules("dashboard"), DASHBOARD_MAY_IMPORT)


@pytest.mark.parametrize("package", ["dashboard/queries", "dashboard/charts", "dashboard/text"])
def test_queries_charts_and_sentences_know_no_streamlit(package: str) -> None:
    assert not [path.name for path in modules(package) for name in imports(path) if is_within(name, ("streamlit",))]


def test_the_rules_can_fail(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("from dashboard.format.theme import x\nimport pipeline.store.lake\n")
    assert list(imports(module)) == ["dashboard.format.theme.x", "pipeline.store.lake"]
    assert not is_within("pipeline.store.lake", DASHBOARD_MAY_IMPORT)
