"""docs/constants.md lists every number of a profile with the value in force."""

from __future__ import annotations

from sweepscope.pipeline.estimate.physics.profile import CONSTANTS, load_profiles
from tests.paths import ROOT


def test_the_page_has_every_constant_in_force() -> None:
    base = load_profiles()["default"]
    rows = (ROOT / "docs" / "constants.md").read_text(encoding="utf-8").splitlines()
    listed = {
        cells[1].strip(" `"): cells[2].strip() for row in rows if (cells := row.split("|"))[0] == "" and "`" in row
    }
    numbers = {name: getattr(base, name) for name in CONSTANTS if not isinstance(getattr(base, name), bool | str)}
    assert listed == {name: f"{value:g}" for name, value in numbers.items()}
