"""What is in deploy/ is valid to the tools that read it, and starts commands that there are."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from sweepscope.pipeline.__main__ import build_parser
from sweepscope.pipeline.operations.settings import Settings
from tests.paths import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "docker" / "compose.yaml"
DOCKERFILE = DEPLOY / "docker" / "Dockerfile"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
BIN = Path(sys.executable).parent


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / "sweepscope.yaml").read_text()))


def manifest(kind: str) -> dict[str, Any]:
    (found,) = (one for one in manifests() if one["kind"] == kind)
    return found


def parsed(words: list[str]) -> argparse.Namespace:
    """A command line as our own parser takes it; it would exit for one that it does not."""
    return build_parser().parse_args(words)


def values(name: str, document: object) -> Iterator[Any]:
    """Every value of a key, at any depth."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key == name:
                yield value
            yield from values(name, value)
    elif isinstance(document, list):
        for value in document:
            yield from values(name, value)


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_systemd_takes_the_units(unit: Path, tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    # It looks whether the command is there, which is this environment's.
    text = unit.read_text().replace("%h/.local/bin/sweepscope", str(BIN / "sweepscope"))
    copy = tmp_path / unit.name
    copy.write_text(text)
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(copy)], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_units_start_commands_that_there_are(unit: Path) -> None:
    (command,) = re.findall(r"^ExecStart=%h/\.local/bin/sweepscope (.*)$", unit.read_text(), re.MULTILINE)
    assert parsed(shlex.split(command)).verb in ("watch", "dashboard")
    example = (DEPLOY / "systemd" / "environment.example").read_text()
    assert set(re.findall(r"\$(\w+)", command)) <= set(re.findall(r"^(\w+)=", example, re.MULTILINE))


def test_the_compose_file_follows_the_published_schema() -> None:
    command = [str(BIN / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_compose_file_starts_commands_that_there_are_with_files_that_there_are() -> None:
    document = yaml.safe_load(COMPOSE.read_text())
    services = document["services"]
    ours = [one for one in services.values() if "build" in one]
    assert sorted(parsed(one["command"]).verb for one in ours) == ["dashboard", "watch"]
    for one in ours:
        assert parsed(one["command"]).host == "0.0.0.0"  # noqa: S104 -- of the container
        assert "SWEEPSCOPE_PASSWORD" in one["environment"], "it would not start without one"
        context = (COMPOSE.parent / one["build"]["context"]).resolve()
        assert context == ROOT
        assert context / one["build"]["dockerfile"] == DOCKERFILE
        assert all(port.startswith("127.0.0.1:") for port in one["ports"])
    named = {
        volume.partition(":")[0] for one in services.values() for volume in one["volumes"] if isinstance(volume, str)
    }
    assert named == set(document["volumes"])


def test_hadolint_has_nothing_against_the_dockerfile() -> None:
    if not (BIN / "hadolint").exists():
        pytest.skip("hadolint is not installed: its package has a program for Linux on x86-64 only")
    done = subprocess.run([str(BIN / "hadolint"), str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_has_all_that_the_package_is_made_of() -> None:
    ignore = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().splitlines()
    taken = {line.removeprefix("!") for line in ignore if line.startswith("!")}
    assert ignore[1] == "*"
    assert all((ROOT / name).exists() for name in taken)
    project = (ROOT / "pyproject.toml").read_text()
    sources = set(re.findall(r'^(\w+) = "sweepscope/\w+"$', project, re.MULTILINE))
    assert sources == {"dashboard", "data", "pipeline", "schemas"}
    assert taken >= {*sources, "sweepscope", "README.md", "CHANGELOG.md", "constraints.txt", "pyproject.toml"}
    assert not any(fnmatch(name, "**/__pycache__") for name in taken)
    text = DOCKERFILE.read_text()
    (default,) = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    assert parsed(yaml.safe_load(default)).verb == "dashboard"
    assert "\nUSER 10001\n" in text


@pytest.mark.parametrize("document", manifests(), ids=lambda one: one["kind"])
@pytest.mark.parametrize("version", ["1.30", "1.37"])
def test_kubernetes_takes_the_manifests(document: dict[str, Any], version: str) -> None:
    assert kubernetes_validate.validate(document, version, strict=True) == version


def test_the_pod_starts_commands_that_there_are_and_is_probed_where_they_answer() -> None:
    pod = manifest("StatefulSet")["spec"]["template"]["spec"]
    watch, dashboard = pod["containers"]
    assert parsed(watch["args"]).verb == "watch"
    assert parsed(watch["args"]).host == "127.0.0.1", "Dagster's page is not for the cluster"
    names = parsed(dashboard["args"]).allow_host
    rule = manifest("Ingress")["spec"]["rules"][0]
    assert {rule["host"], manifest("Service")["metadata"]["name"]} == set(names)
    assert {probe["path"] for probe in values("httpGet", dashboard)} == {"/healthz"}
    volumes = {volume["name"] for volume in pod["volumes"]}
    mounted = {mount["name"] for mounts in values("volumeMounts", pod) for mount in mounts}
    assert mounted == volumes
    environment = {one["name"]: one.get("value") for one in watch["env"]}
    assert watch["env"] == dashboard["env"]
    homes = [mount["mountPath"] for mount in watch["volumeMounts"] if mount["name"] == "home"]
    assert str(environment["SWEEPSCOPE_HOME"]).startswith(homes[0])
    folder, _, file = str(environment["SWEEPSCOPE_OPERATIONS"]).rpartition("/")
    assert folder in {mount["mountPath"] for mount in watch["volumeMounts"]}
    assert file in manifest("ConfigMap")["data"]


def test_the_settings_of_the_config_map_are_valid() -> None:
    import tomllib

    (text,) = manifest("ConfigMap")["data"].values()
    assert Settings.model_validate(tomllib.loads(text)).alerts.no_data_hours == 24


def test_services_lead_to_the_pod() -> None:
    labels = manifest("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    service = manifest("Service")
    assert service["spec"]["selector"].items() <= labels.items()
    assert manifest("StatefulSet")["spec"]["serviceName"] == service["metadata"]["name"]
    ports = {port["name"] for ports in values("ports", manifest("StatefulSet")) for port in ports}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
