"""What is installed: the wheel from the checkout and from the source archive, run where nothing of the checkout is."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.paths import GOLDEN, ROOT

TOP_LEVEL = ("dashboard", "data", "pipeline", "schemas")
INSTALLED_AS = {
    "yaml": "pyyaml",
    "dagster_webserver": "dagster-webserver",
    "fastapi_offline": "fastapi-offline",
}
"""Import name to the name of its distribution, where they differ."""

HOSTILE = "raise ImportError('a file of the current directory was imported')\n"


def third_party_imports() -> set[str]:
    """Top-level names that the product imports and that are neither ours nor Python's."""
    names = set()
    for path in (path for top in TOP_LEVEL for path in (ROOT / top).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names - {"sweepscope"}


def test_every_third_party_import_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [lines for name, lines in project["optional-dependencies"].items() if name != "dev"]
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    declared = {re.match(r"[\w.-]+", line)[0].lower() for line in lines}  # type: ignore[index]
    assert {INSTALLED_AS.get(name, name) for name in third_party_imports()} - declared == set()


def build(source: Path, out: Path, kind: str) -> Path:
    """A wheel or a source archive (`kind` "wheel" or "sdist"), by the build backend itself."""
    program = f"import sys; from hatchling.build import build_{kind}; print(build_{kind}(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(out)], cwd=source, check=True, capture_output=True, text=True
    )
    return out / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build(ROOT, folder, "sdist")) as archive:
        archive.extractall(folder, filter="data")
    (found,) = (path for path in folder.iterdir() if path.is_dir())
    return found


def members(wheel: Path) -> dict[str, int]:
    """Path to checksum of each file, the list of them apart."""
    with zipfile.ZipFile(wheel) as archive:
        return {info.filename: info.CRC for info in archive.infolist() if not info.filename.endswith("/RECORD")}


def test_a_wheel_holds_the_product_below_one_name(wheel: Path) -> None:
    names = members(wheel)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"sweepscope"}
    assert not [name for name in names if re.search(r"tests?/|cache(d|__)?/|\.pyc$", name)]
    for top in TOP_LEVEL:
        kept = [path for path in (ROOT / top).rglob("*") if path.is_file() and "cache__" not in str(path)]
        assert {f"sweepscope/{path.relative_to(ROOT)}" for path in kept} <= set(names)


def test_the_source_archive_makes_the_same_wheel(wheel: Path, unpacked: Path, tmp_path: Path) -> None:
    assert {path.name for path in unpacked.iterdir()} == {
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
        "sweepscope",
    }
    assert members(build(unpacked, tmp_path, "wheel")) == members(wheel)


class Installed:
    """The wheel and what it depends on, without the checkout; the current directory has files named as ours are."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        self.target, self.cwd, dependencies = folder / "target", folder / "cwd", folder / "site-packages"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
        subprocess.run([*pip, str(self.target), str(wheel)], check=True, capture_output=True)
        dependencies.mkdir()
        for path in Path(sysconfig.get_path("purelib")).iterdir():
            if path.suffix != ".pth" and "sweepscope" not in path.name:
                (dependencies / path.name).symlink_to(path)
        for name in (*TOP_LEVEL, "gql"):
            (self.cwd / name).mkdir(parents=True)
            (self.cwd / name / "__init__.py").write_text(HOSTILE)
            (self.cwd / f"{name}.py").write_text(HOSTILE)
        self.environment = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{self.target}{os.pathsep}{dependencies}",
            "SWEEPSCOPE_HOME": str(folder / "home"),
        }

    def command(self, *words: str) -> list[str]:
        """The console script, by the Python below the virtual environment, which knows no site-packages of ours."""
        python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        return [str(python), str(self.target / "bin" / "sweepscope"), *words]

    def run(self, *words: str) -> str:
        done = subprocess.run(
            self.command(*words), cwd=self.cwd, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(wheel, tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def ingested(installed: Installed) -> Installed:
    shutil.copy(GOLDEN / "composer" / "llmfoundry" / "train.log", installed.cwd / "train.log")
    summary = json.loads(installed.run("ingest", "train.log", "--no-published", "--json"))
    assert summary["rows"]["runs"] >= 1
    return installed


def test_an_installed_wheel_says_its_version(installed: Installed) -> None:
    assert re.fullmatch(r"sweepscope \d+\.\d+\.\d+\n", installed.run("--version"))


def test_an_installed_wheel_finds_its_resource_files(installed: Installed) -> None:
    assert "signature" in installed.run("dialect", "example")


def test_an_installed_wheel_answers_queries(ingested: Installed) -> None:
    assert json.loads(ingested.run("query", "select count(*) as runs from runs", "--json")) == [{"runs": 1}]


@pytest.fixture
def page(ingested: Installed) -> Iterator[str]:
    """Address of the dashboard of the installed wheel."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    words = ingested.command("dashboard", "--port", port, "--json")
    with subprocess.Popen(
        words, cwd=ingested.cwd, env=ingested.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            text = ""
            while not text.rstrip().endswith("}"):
                line = process.stdout.readline()
                assert line, f"the dashboard ended with {process.wait()}"
                text += line
            yield json.loads(text)["dashboard"]
        finally:
            process.terminate()
            process.wait(timeout=60)


def test_the_dashboard_of_an_installed_wheel_answers(page: str) -> None:
    with urlopen(f"{page}/_stcore/health", timeout=120) as answer:  # noqa: S310  # on this host
        assert answer.read() == b"ok"
    with urlopen(page, timeout=120) as answer:  # noqa: S310  # on this host
        assert answer.status == 200
