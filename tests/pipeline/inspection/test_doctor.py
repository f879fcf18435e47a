"""What the doctor sees: a healthy home, an empty one, and each thing broken on its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.inspection import doctor
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lock import exclusive
from tests.dashboard.store_rows import file_row, make_home, reject_row, run_row

CHECKS = [
    "python",
    "packages",
    "machine",
    "home",
    "disk",
    "writers",
    "watcher",
    "store",
    "inputs",
    "dialects",
    "calibration",
    "dagster",
    "operations",
]


def found(home: Path) -> dict[str, doctor.Finding]:
    return {one.check: one for one in doctor.examine(str(home))}


def test_a_healthy_home_has_nothing_to_mend(tmp_path: Path) -> None:
    seen = found(make_home(tmp_path / "home", runs=[run_row("a"), run_row("b")]))
    checks = [name for name in seen if name != "release"]  # the rows are of no real release
    assert checks == CHECKS
    assert {one.state for name, one in seen.items() if name not in ("release", "disk", "machine")} == {"ok"}
    assert "2 runs" in seen["store"].message


def test_a_home_without_anything_is_no_fault(tmp_path: Path) -> None:
    seen = found(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    assert [name for name, one in seen.items() if one.state == "fault"] == []
    assert "sweepscope ingest PATH" in str(seen["store"].remedy)
    assert "does not exist yet" in seen["home"].message


def test_what_could_not_be_read_is_counted(tmp_path: Path) -> None:
    rows = {"files": [file_row(), file_row("/logs/x.bin", status="rejected")], "rejects": [reject_row()]}
    seen = found(make_home(tmp_path / "home", runs=[run_row("a")], **rows))
    assert seen["inputs"].state == "note"
    assert seen["inputs"].message == "1 file could not be read, 1 line did not parse"


def test_a_damaged_store_is_a_fault_and_hides_nothing(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", runs=[run_row("a")])
    Home(home).link.resolve().write_bytes(b"no database at all" * 100)
    seen = found(home)
    assert seen["store"].state == "fault"
    assert "sweepscope ingest" in seen["store"].message
    assert seen["dagster"].state == "ok"


def test_a_writer_is_named(tmp_path: Path) -> None:
    home = Home.resolve(str(tmp_path / "home"))
    with exclusive(home.lake_lock, "ingesting"):
        assert "(ingesting, since" in found(home.path)["writers"].message
    assert found(home.path)["writers"].state == "ok"


@pytest.mark.parametrize(
    ("path", "check"), [("calibration/hopper.toml", "calibration"), ("dagster/dagster.yaml", "dagster")]
)
def test_a_broken_setting_is_a_fault_that_names_its_file(tmp_path: Path, path: str, check: str) -> None:
    broken = tmp_path / path
    broken.parent.mkdir(parents=True)
    broken.write_text("[constants]\nno_such = 1\n" if check == "calibration" else "telemetry")
    seen = found(tmp_path)
    assert seen[check].state == "fault"
    assert str(broken) in seen[check].message


def test_a_profile_of_older_equations_is_named(tmp_path: Path) -> None:
    path = tmp_path / "calibration" / "hopper-nemo.toml"
    path.parent.mkdir()
    path.write_text('[about]\nkind = "fitted"\n')
    seen = found(tmp_path)["calibration"]
    assert seen.state == "note"
    assert "hopper-nemo" in seen.message
    assert "sweepscope calibrate" in (seen.remedy or "")


def test_a_home_that_cannot_be_one_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "not a directory" in found(tmp_path / "file")["home"].message
    assert found(tmp_path / "file")["home"].state == "fault"


def test_a_home_that_refuses_writing_can_still_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", full)
    seen = found(tmp_path)
    assert (seen["home"].state, seen["home"].message) == (
        "fault",
        f"{tmp_path} cannot be written to: No space left on device",
    )
    assert "Reading works" in str(seen["home"].remedy)


def test_packages_that_are_missing_or_too_old_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["polars>=999", "surely-not-there", "numpy>=2", "mypy>=999; extra == 'dev'"]
    monkeypatch.setattr(doctor, "requires", lambda _name: wanted)
    packages = found(tmp_path)["packages"]
    assert packages.state == "fault"
    assert "surely-not-there is missing" in packages.message
    assert "is not >=999" in packages.message
    assert "mypy" not in packages.message


def test_the_page_cache_counts_as_available_memory(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 24684320 kB\nMemFree: 1048576 kB\nMemAvailable: 20971520 kB\nCached: 19922944 kB\n")
    assert doctor._available_bytes(meminfo) == 20 << 30
    assert doctor._available_bytes(tmp_path / "missing") is None
    meminfo.write_text("MemFree: 1048576 kB\n")  # a kernel before 3.14
    assert (doctor._available_bytes(meminfo) or 0) > 0


def test_little_room_and_memory_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_available_bytes", lambda: 1 << 30)
    monkeypatch.setattr(doctor, "LOW_BYTES", 1 << 70)
    seen = found(tmp_path)
    assert (seen["machine"].state, seen["disk"].state) == ("note", "note")
    monkeypatch.setattr(doctor, "FEW_BYTES", 1 << 70)
    assert found(tmp_path)["disk"].state == "fault"


def test_the_command_exits_with_1_for_a_fault_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--home", str(tmp_path)]) == 0
    assert "note   store" in capsys.readouterr().out
    (tmp_path / "file").write_text("")
    assert main(["doctor", "--home", str(tmp_path / "file"), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert {"check": "home", "state": "fault"}.items() <= document[-1].items()
