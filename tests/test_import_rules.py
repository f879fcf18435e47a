"""A module imports from its own package and from those before it in `tests.layers.LAYERS`, never upwards."""

from __future__ import annotations

import ast

import pytest

from tests.layers import (
    DASHBOARD_MAY_IMPORT,
    FILES_STORES_AND_FRAMEWORKS,
    ISOLATION,
    LAYERS,
    MODULES,
    NO_FILE_STORE_OR_FRAMEWORK,
    NO_STREAMLIT,
    ROOMS,
    edges,
    floor_of,
    imports,
    is_within,
    levels,
    upward,
)

FLOORS = [line.split() for line in LAYERS]
MOST_LEVELS = 10


@pytest.mark.slow
def test_no_import_goes_up() -> None:
    assert not upward(edges(), FLOORS)


def test_no_import_goes_up_within_a_package() -> None:
    bad = []
    for package, rooms in ROOMS.items():
        floors = [[f"{package}.{room}" for room in floor.split()] for floor in rooms.split("<")]
        bad += upward([(a, b) for a, b in edges() if is_within(a, (package,)) and is_within(b, (package,))], floors)
    assert not bad


def test_the_graph_of_packages_is_flat() -> None:
    """The longest chain of packages that import each other is one that a reader can keep in mind."""
    assert max(levels(edges(), FLOORS).values()) <= MOST_LEVELS
    with pytest.raises(ValueError, match="circle"):
        levels([("pipeline.io.x", "pipeline.text.y"), ("pipeline.text.y", "pipeline.io.x")], FLOORS)


def test_every_module_has_a_floor() -> None:
    rooms = {
        f"{package}.{room}" for package, line in ROOMS.items() for floor in line.split("<") for room in floor.split()
    }
    homeless = [name for name in MODULES if "." in name and floor_of(name, FLOORS) is None]
    homeless += [
        name
        for name in MODULES
        if is_within(name, tuple(ROOMS)) and name not in ROOMS and not is_within(name, tuple(rooms))
    ]
    assert not homeless


def test_every_other_module_is_in_a_package() -> None:
    flat = [name for name in MODULES if name.count(".") == 1 and MODULES[name].name != "__init__.py"]
    allowed = {"pipeline.errors", "pipeline.__main__", "dashboard.navigation", "dashboard.streamlit_app"}
    assert {name for name in flat if not name.startswith("schemas.")} == allowed
    assert {name for name in flat if name.startswith("schemas.")} == {
        "schemas.limits",
        "schemas.registry",
        "schemas.thresholds",
    }


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


@pytest.mark.slow
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
