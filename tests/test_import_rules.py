"""The plan of the code: a module imports from its own package and from those before it in `LAYERS`, never upwards.

This list is the architecture. docs/architecture.md draws it; each package's docstring says what it is for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
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
    "pipeline.scheduler",
    "pipeline.estimate",
    "pipeline.store",
    "pipeline.ingest",
    "pipeline.inspection",
    "pipeline.orchestration",
    "pipeline.commands",
    "pipeline.__main__",
    "dashboard",
)
"""From left to right, or bottom to top; packages of one line do not import each other."""

ROOMS = {
    "schemas": "vocab thresholds < core < columns < tables < registry",
    "pipeline.logs": "facts < dialect < steady_state < evidence < engine < sidecars < extractors < diagnostics"
    " < dialects < registry < runs < declared",
    "pipeline.estimate": "physics < learned < search < rows < calibration < advice",
    "pipeline.nccl": "names facts codes < bench < flight_recorder < lines < tables < summary",
    "pipeline.memory": "names < snapshot < analysis < isolation < gpu_samples < profiler < sources < report",
    "dashboard": "sandbox navigation < format < selection < queries < view_models < text < charts < widgets < app"
    " < sections < app_pages < streamlit_app",
}
"""Rooms of a package, in the same order."""

DASHBOARD_MAY_IMPORT = (
    "schemas",
    "pipeline.errors",
    "pipeline.reference",
    "pipeline.estimate",
    "pipeline.store.published",
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
"""Starts processes, which is its purpose."""


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


def test_no_import_goes_up() -> None:
    assert not upward(edges(), [line.split() for line in LAYERS])


def test_no_import_goes_up_within_a_package() -> None:
    bad = []
    for package, rooms in ROOMS.items():
        floors = [[f"{package}.{room}" for room in floor.split()] for floor in rooms.split("<")]
        bad += upward([(a, b) for a, b in edges() if is_within(a, (package,)) and is_within(b, (package,))], floors)
    assert not bad


def test_every_module_has_a_floor() -> None:
    floors = [line.split() for line in LAYERS]
    rooms = {
        f"{package}.{room}" for package, line in ROOMS.items() for floor in line.split("<") for room in floor.split()
    }
    homeless = [name for name in MODULES if "." in name and floor_of(name, floors) is None]
    homeless += [
        name
        for name in MODULES
        if is_within(name, tuple(ROOMS)) and name not in ROOMS and not is_within(name, tuple(rooms))
    ]
    assert not homeless


def test_the_dashboard_reads_the_published_store_only() -> None:
    allowed = ("dashboard", *DASHBOARD_MAY_IMPORT)
    assert not [f"{a} imports {b}" for a, b in edges() if is_within(a, ("dashboard",)) and not is_within(b, allowed)]


def foreign(packages: tuple[str, ...], forbidden: tuple[str, ...], *, but: tuple[str, ...] = ()) -> list[str]:
    return [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if is_within(module, packages) and not is_within(module, but)
        for name in imports(path.read_text(encoding="utf-8"))
        if is_within(name, forbidden)
    ]


def test_parsers_touch_no_file_store_or_framework() -> None:
    assert not foreign(NO_FILE_STORE_OR_FRAMEWORK, FILES_STORES_AND_FRAMEWORKS, but=ISOLATION)


def test_queries_models_charts_and_sentences_know_no_streamlit() -> None:
    assert not foreign(NO_STREAMLIT, ("streamlit",))


def test_everything_is_imported_by_the_name_of_the_distribution() -> None:
    """A plain `import data` would find whatever lies in the current directory."""
    ours = ("schemas", "data", "pipeline", "dashboard")
    plain = []
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None) or ""]
            )
            plain += [f"{module} imports {name}" for name in names if name.split(".")[0] in ours]
    assert not plain


def test_the_rules_can_fail() -> None:
    source = "from sweepscope.dashboard.format.theme import x\nimport sweepscope.pipeline.store.lake\n"
    assert list(imports(source)) == ["dashboard.format.theme.x", "pipeline.store.lake"]
    assert not is_within("pipeline.store.lake", DASHBOARD_MAY_IMPORT)
    floors = [["pipeline.text"], ["pipeline.io", "pipeline.reference"]]
    found = [("pipeline.text.lines", "pipeline.io.files"), ("pipeline.io.files", "pipeline.reference.models")]
    assert len(upward(found, floors)) == 2
    assert not upward([("pipeline.io.files", "pipeline.text.lines")], floors)
