"""The plan of the code, as one ordered list: what may import what. Tests hold it, and docs/architecture.md draws it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.paths import ROOT

LAYERS = (
    "schemas data pipeline.errors",
    "pipeline.text",
    "pipeline.io",
    "pipeline.simulate",
    "pipeline.reference",
    "pipeline.derive",
    "pipeline.nccl",
    "pipeline.memory",
    "pipeline.logs",
    "pipeline.launch",
    "pipeline.scheduler",
    "pipeline.estimate",
    "pipeline.store",
    "pipeline.ingest",
    "pipeline.operations",
    "pipeline.inspection",
    "pipeline.orchestration",
    "pipeline.commands",
    "pipeline.__main__",
    "dashboard",
)
"""From left to right, or bottom to top; packages of one line do not import each other."""

ROOMS = {
    "schemas": "vocab thresholds limits < core < columns < tables < registry",
    "pipeline.logs": "synonyms facts < expressions < dialect < figures < steady_state < evidence < engine < sidecars"
    " < trackers < extractors < diagnostics < dialects < declared < inference < result_tables < benchmarks < bundled"
    " < registry < runs",
    "pipeline.estimate": "physics < learned < search < rows < calibration < advice < planning",
    "pipeline.nccl": "names facts codes hang_row < bench < flight_recorder < lines < tables < summary inspector",
    "pipeline.memory": "names < snapshot < analysis < isolation < gpu_samples < profiler < sources < report",
    "dashboard": "sandbox navigation < format < selection < queries < view_models < text < charts < widgets < report"
    " < answers < app < sections < app_pages < streamlit_app",
}
"""Rooms of a package, in the same order."""

DASHBOARD_MAY_IMPORT = (
    "schemas",
    "pipeline.errors",
    "pipeline.reference",
    "pipeline.estimate",
    "pipeline.store.published",
    # What was inferred is corrected on a page: the code that reads logs compiles, tries and keeps it.
    "pipeline.inspection.correct_dialect",
    # A line is shown from where its log lies: unpacking, encodings, numbering and secrets are those of the ingest.
    "pipeline.inspection.log_window",
    "pipeline.inspection.log_diff",
    # What logs do not say is stated on a page: checked and kept as the command line does it.
    "pipeline.inspection.state_facts",
    # Notes, tags and named views are written on pages: checked, kept and published as the command line does it.
    "pipeline.inspection.keep_notes",
    # So are prices of accelerators.
    "pipeline.inspection.keep_prices",
    # The last line of a running job's log is read from where it lies, when it is shown.
    "pipeline.inspection.live_log",
    # Rows go to programs as `sweepscope query --json` writes them.
    "pipeline.text.json_rows",
    # Queries of users run in a sandbox like hostile snapshots: one implementation of its limits, not two.
    "pipeline.io.sandbox",
    # Its server is guarded like Dagster's, and ends with the process that started it.
    "pipeline.io.children",
    # It answers health checks and Prometheus.
    "pipeline.operations.exposition",
    "pipeline.operations.measures",
    "pipeline.store.home",
    "pipeline.io.event_log",
    "pipeline.io.web_access",
)

NO_FILE_STORE_OR_FRAMEWORK = (
    "pipeline.text",
    "pipeline.logs",
    "pipeline.nccl",
    "pipeline.memory",
    "pipeline.scheduler",
)
FILES_STORES_AND_FRAMEWORKS = (
    "dagster",
    "deltalake",
    "duckdb",
    "fsspec",
    "os",
    "pathlib",
    "plotly",
    "streamlit",
    "subprocess",
)
NO_STREAMLIT = ("dashboard.queries", "dashboard.view_models", "dashboard.charts", "dashboard.text", "dashboard.format")
ISOLATION = ("pipeline.memory.isolation",)
"""Reads limits from the environment."""


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {
    name_of(path): path for top in ("schemas", "data", "pipeline", "dashboard") for path in (ROOT / top).rglob("*.py")
}


def imports(source: str) -> Iterator[str]:
    """Dotted names that a module imports, `from a import b` as `a.b`; ours without the name of the distribution."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.removeprefix("sweepscope.") for name in names)


@cache
def edges() -> list[tuple[str, str]]:
    """Importing module and imported name, within what is ours."""
    found = [(module, name) for module, path in MODULES.items() for name in imports(path.read_text(encoding="utf-8"))]
    return sorted(
        {(module, name) for module, name in found if name.split(".")[0] in ("schemas", "data", "pipeline", "dashboard")}
    )


def is_within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def floor_of(name: str, floors: list[list[str]]) -> tuple[int, str] | None:
    """Floor and package that a dotted name belongs to."""
    return next(
        ((i, package) for i, floor in enumerate(floors) for package in floor if is_within(name, (package,))), None
    )


def upward(found: list[tuple[str, str]], floors: list[list[str]]) -> list[str]:
    """Imports that leave their package and do not go down."""
    bad = []
    for module, name in found:
        at, to = floor_of(module, floors), floor_of(name, floors)
        if at and to and at[1] != to[1] and to[0] >= at[0]:
            bad.append(f"{module} imports {name}")
    return bad


def levels(found: list[tuple[str, str]], floors: list[list[str]]) -> dict[str, int]:
    """Length of the longest chain of imports below each package, itself included. Raises ValueError on a circle."""
    below: dict[str, set[str]] = {package: set() for floor in floors for package in floor}
    for module, name in found:
        at, to = floor_of(module, floors), floor_of(name, floors)
        if at and to and at[1] != to[1]:
            below[at[1]].add(to[1])

    @cache
    def level(package: str) -> int:
        return 1 + max(map(level, below[package]), default=0)

    try:
        return {package: level(package) for package in below}
    except RecursionError:
        raise ValueError("packages import each other in a circle") from None
