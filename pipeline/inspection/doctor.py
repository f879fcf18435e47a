"""Checks of an installation and a home: one finding each, with a remedy where something is wrong.

Nothing is changed but a probe file, which is removed again. A check that raises an error reports it as its finding, so
that the other checks still run.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

import yaml
from packaging.requirements import Requirement

from sweepscope.pipeline.errors import NoStoreError, SweepscopeError
from sweepscope.pipeline.estimate.physics.profile import is_current, load_profiles, read_profile
from sweepscope.pipeline.ingest import dialect_files
from sweepscope.pipeline.io.worker_process import cores
from sweepscope.pipeline.operations.dagster_settings import EARLIER, digest, missing_settings
from sweepscope.pipeline.operations.settings import read_settings
from sweepscope.pipeline.store import lock, published, release, watcher
from sweepscope.pipeline.store.home import Home

State = Literal["ok", "note", "fault"]
"""`note`: works, but perhaps not as expected."""

FEW_BYTES, LOW_BYTES = 500 << 20, 5 << 30
"""Free disk space below which any ingest is likely to fail, and below which a large one may."""
_LITTLE_MEMORY_BYTES = 2 << 30


@dataclass(frozen=True)
class Finding:
    """Result of one check, and what to do about it where it is not ok."""

    check: str
    state: State
    message: str
    remedy: str | None = None


def examine(given_home: str | None) -> list[Finding]:
    """Findings on the installation and on the home that `given_home` or the environment names, in a fixed order."""
    findings = [*_packages(), *_machine()]
    try:
        home = Home.resolve(given_home, for_writing=False)
    except SweepscopeError as error:
        return [*findings, Finding("home", "fault", str(error))]
    for check, look in _OF_HOME.items():
        try:
            findings += look(home)
        except SweepscopeError as error:
            findings.append(Finding(check, "fault", str(error)))
        except (OSError, yaml.YAMLError) as error:
            findings.append(Finding(check, "fault", str(error).split("\n", 1)[0], f"Look at {home.path}."))
    return findings


def _packages() -> Iterator[Finding]:
    yield Finding("python", "ok", platform.python_version())
    wanted = [Requirement(text) for text in requires("sweepscope") or []]
    needed = [package for package in wanted if package.marker is None or package.marker.evaluate({"extra": ""})]
    wrong = []
    for package in needed:
        try:
            found = version(package.name)
        except PackageNotFoundError:
            wrong.append(f"{package.name} is missing")
            continue
        if not package.specifier.contains(found, prereleases=True):
            wrong.append(f"{package.name} {found} is not {package.specifier}")
    if wrong:
        yield Finding(
            "packages", "fault", "; ".join(wrong), "Install them again: `make install`, or pip with the pins."
        )
    else:
        yield Finding("packages", "ok", f"{len(needed)} packages as required, sweepscope {version('sweepscope')}")


def _machine() -> Iterator[Finding]:
    free = _available_bytes()
    message = f"{cores()} processor cores" + (f", {free / 2**30:.1f} GiB of memory available" if free else "")
    if free is not None and free < _LITTLE_MEMORY_BYTES:
        yield Finding("machine", "note", message, "Ingest with --workers 1: each process takes up to half a gigabyte.")
    else:
        yield Finding("machine", "ok", message)


def _available_bytes(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """What processes can still take, with the page cache, which gives way (proc(5): kB), where the system says it."""
    try:
        found = re.search(r"^MemAvailable:\s*(\d+) kB", meminfo.read_text(encoding="ascii"), re.MULTILINE)
        return int(found[1]) << 10 if found else os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def _home_folder(home: Home) -> Iterator[Finding]:
    path = home.path
    if not path.exists():
        above = next(parent for parent in path.parents if parent.exists())
        yield (
            Finding("home", "note", f"{path} does not exist yet", "The first `sweepscope ingest PATH` makes it.")
            if os.access(above, os.W_OK | os.X_OK)
            else Finding(
                "home",
                "fault",
                f"{path} does not exist, and {above} is not writable for you",
                "Give another directory with --home, or set SWEEPSCOPE_HOME.",
            )
        )
        return
    try:
        with tempfile.TemporaryFile(dir=path) as probe:
            probe.write(b"x")
            probe.flush()
    except OSError as error:
        remedy = "Reading works; to ingest, make it writable, free disk space, or give another directory with --home."
        yield Finding("home", "fault", f"{path} cannot be written to: {error.strerror}", remedy)
    else:
        yield Finding("home", "ok", str(path))


def _disk(home: Home) -> Iterator[Finding]:
    folder = home.path if home.path.exists() else next(parent for parent in home.path.parents if parent.exists())
    free = shutil.disk_usage(folder).free
    message = f"{free / 2**30:.1f} GiB free"
    if free < LOW_BYTES:
        state: State = "fault" if free < FEW_BYTES else "note"
        yield Finding(
            "disk", state, message, "Free disk space, or run `sweepscope store compact`, which removes unused files."
        )
    else:
        yield Finding("disk", "ok", message)


def _locks(home: Home) -> Iterator[Finding]:
    holders = [found for path in (home.lake_lock, home.store_lock) if (found := lock.holder(path))]
    if holders:
        yield Finding("writers", "note", f"being written by {'; '.join(holders)}", "Wait until it ends, or stop it.")
    else:
        yield Finding("writers", "ok", "no process is writing to it")


def _watcher(home: Home) -> Iterator[Finding]:
    if at_work := watcher.watcher(home):
        yield Finding("watcher", "ok", at_work)
    elif left := watcher.left_servers(home):
        yield Finding("watcher", "note", str(left), left.remedy)
    else:
        yield Finding("watcher", "ok", "no process watches for new runs")


def _store(home: Home) -> Iterator[Finding]:
    try:
        path = published.current(home.path)
    except NoStoreError as error:
        yield Finding("store", "note", "nothing has been ingested yet", str(error).split(". ", 1)[-1])
        return
    with closing(published.connect(path)) as con:
        info = published.store_info(con)
        runs, failed, rejected = con.execute(
            "SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM files WHERE status = 'rejected'), "
            "(SELECT count(*) FROM rejects)"
        ).fetchall()[0]
    yield Finding("store", "ok", f"version {info.version} of {info.published_at:%Y-%m-%d %H:%M} UTC, {runs:,} runs")
    newest = release.latest(home.releases)
    if newest is not None and newest.number != info.release:
        message = f"the lake is at release {newest.number:,}, the store shows {info.release:,}"
        yield Finding("release", "note", message, "Run `sweepscope ingest` on any path: it publishes the lake.")
    if info.package_version != version("sweepscope"):
        message = f"published by sweepscope {info.package_version}, this is {version('sweepscope')}"
        yield Finding("release", "note", message, "Ingest once more, so that the views are those of this version.")
    if failed or rejected:
        files, lines = "file" if failed == 1 else "files", "line" if rejected == 1 else "lines"
        message = f"{failed:,} {files} could not be read, {rejected:,} {lines} did not parse"
        yield Finding(
            "inputs",
            "note",
            message,
            "The page Data health and the tables `files` and `rejects` list them with reasons.",
        )
    else:
        yield Finding("inputs", "ok", "every file and line was read")


def _dialects(home: Home) -> Iterator[Finding]:
    found = dialect_files.remembered(home) if home.dialects.is_dir() else []
    names = ", ".join(dialect.name for dialect in found)
    yield Finding("dialects", "ok", f"of this home: {names}" if names else "the built-in ones")


def _calibration(home: Home) -> Iterator[Finding]:
    files = sorted((home.path / "calibration").glob("*.toml"))
    base = load_profiles()["default"]
    current = [is_current(path) for path in files]
    if old := ", ".join(path.stem for path, used in zip(files, current, strict=True) if not used):
        message = f"fitted for the equations of an older version, and not used: {old}"
        yield Finding("calibration", "note", message, "Fit them again: sweepscope calibrate.")
        return
    names = ", ".join(read_profile(path, base=base).name for path in files)
    yield Finding("calibration", "ok", f"of this home's runs: {names}" if names else "the bundled profiles")


def _dagster(home: Home) -> Iterator[Finding]:
    settings = home.dagster / "dagster.yaml"
    if not settings.exists():
        yield Finding("dagster", "ok", "made at the first ingest")
        return
    parsed = yaml.safe_load(settings.read_text(encoding="utf-8"))
    if isinstance(parsed, dict):
        missing = ", ".join(missing_settings(home))
        yield (
            Finding(
                "dagster", "note", f"{settings} was changed by hand and lacks {missing}", "Add what you want of it."
            )
            if missing and digest(settings.read_text(encoding="utf-8")) not in EARLIER
            else Finding("dagster", "ok", str(settings))
        )
    else:
        remedy = "Remove it: the next ingest writes it again."
        yield Finding("dagster", "fault", f"{settings} holds no settings", remedy)


def _operations(home: Home) -> Iterator[Finding]:
    alerts = read_settings(home).alerts
    labels = ", ".join(receiver.label for receiver in alerts.receivers)
    yield Finding("operations", "ok", f"alerts go to {labels}" if labels else "no alerts are sent")


_OF_HOME: dict[str, Callable[[Home], Iterator[Finding]]] = {
    "home": _home_folder,
    "disk": _disk,
    "writers": _locks,
    "watcher": _watcher,
    "store": _store,
    "dialects": _dialects,
    "calibration": _calibration,
    "dagster": _dagster,
    "operations": _operations,
}
