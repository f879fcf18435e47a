"""`sweepscope price`, as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from tests.pipeline.store.lake_rows import unit

pytestmark = pytest.mark.usefixtures("few_views_in_module")


def test_prices_are_set_listed_and_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = Home.resolve(str(tmp_path / "home"))
    Lake(home).commit(unit("a"))
    publish(home)
    where = ["--home", str(home.path)]
    assert main(["price", *where]) == 0
    assert "No accelerator has a price" in capsys.readouterr().out
    assert main(["price", "set", "H100", "$2.50", *where]) == 0
    capsys.readouterr()
    assert main(["price", "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out) == {"H100": 2.5}
    assert main(["price", "set", "H100", *where]) == 2
    assert main(["price", "set", "H100", "free", *where]) == 2
    assert "a price is a number of dollars" in capsys.readouterr().err
    assert main(["price", "remove", "H100", *where]) == 0
    assert main(["price", "remove", "H100", *where]) == 2
    assert "H100 has no price" in capsys.readouterr().err
