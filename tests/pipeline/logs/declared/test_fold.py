"""Facts of a dialect file through discovery and the fold: names of logs, lines that belong together, attempts, times."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import polars as pl

from sweepscope.pipeline.ingest.batch import parse_batch
from sweepscope.pipeline.ingest.discover import discover
from sweepscope.pipeline.io.files import list_files
from sweepscope.pipeline.logs.declared.compile import compile_document
from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.registry import DIALECTS
from tests.acme import CONFIG, DIALECT, LOG

HEAD = 'name = "acme"\nsignature = ["[acme-trainer]"]\n'
NOW = datetime(2030, 1, 1)


def tables(folder: Path, text: str) -> dict[str, pl.DataFrame]:
    both = (compile_document(read_document(text, "acme.toml")), *DIALECTS)
    found = discover(list_files(str(folder)), is_simulated=lambda _place: False, dialects=both)
    return parse_batch(found, now=NOW, dialects=both)


def test_a_run_directory(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "train.log").write_text(LOG)
    (tmp_path / "run" / "run.yaml").write_text(CONFIG)
    found = tables(tmp_path, DIALECT)
    (run,) = found["runs"].to_dicts()
    assert (run["framework"], run["parser"], run["status"]) == ("acme", "acme", "completed")
    assert (run["tp"], run["pp"], run["mbs"], run["precision"]) == (8, 2, 4, "bf16")
    assert (run["steps_logged"], run["steps_planned"], run["last_loss"]) == (3, 3, 7.5)
    assert run["mem_peak_allocated_bytes"] == 43.5 * 2**30
    assert (str(run["started_at"]), str(run["ended_at"])) == ("2026-01-01 10:00:00", "2026-01-01 10:10:00")
    sources = (
        found["settings"].filter(pl.col("name").is_in(["tp", "pp", "mbs"])).select("name", "setting_source", "line_no")
    )
    assert sorted(sources.rows()) == [("mbs", "argument_dump", 3), ("pp", "config_file", None), ("tp", "log_line", 2)]
    assert found["files"].select("kind", "parser", "status").sort("kind").rows() == [
        ("config", "acme", "parsed"),
        ("log", "acme", "parsed"),
    ]


def test_lines_of_one_step_are_joined(tmp_path: Path) -> None:
    own = f"""{HEAD}[[step]]
line = "step {{step}}: loss {{loss}}"
[[step]]
line = "step {{step}}: took {{step_time:ms}}"
"""
    (tmp_path / "a.log").write_text(
        "[acme-trainer]\nstep 1: loss 2.5\nstep 1: took 412.5ms\nstep 2: loss 2.0\nstep 2: took 400ms\n"
    )
    steps = tables(tmp_path, own)["steps"]
    assert steps.select("step", "loss", "step_time_s", "line_no").rows() == [(1, 2.5, 0.4125, 2), (2, 2.0, 0.4, 4)]


def test_a_log_of_another_name(tmp_path: Path) -> None:
    pairs = 'pairs = { step = "step", loss = "loss" }'
    (tmp_path / "run.records").write_text(
        '{"run": "[acme-trainer]"}\n{"step": 1, "loss": 2.5}\n{"loss": 2.0, "step": 2}\n'
    )
    assert tables(tmp_path, f"{HEAD}[[step]]\n{pairs}\n")["runs"].is_empty()
    found = tables(tmp_path, f'{HEAD}logs = ["*.RECORDS"]\n[[step]]\n{pairs}\n')
    assert found["steps"].select("step", "loss").rows() == [(1, 2.5), (2, 2.0)]


def test_every_rank_prints_and_a_launch_begins_a_new_attempt(tmp_path: Path) -> None:
    own = f"""{HEAD}[[step]]
line = "step {{step}} loss {{loss}}"
[[event]]
kind = "launch"
line = "[acme-trainer] up"
"""
    run = "".join(f"[rank{rank}]: step {step} loss {step}.5\n" for step in (1, 2) for rank in range(4))
    (tmp_path / "a.log").write_text(f"[acme-trainer] up\n{run}[acme-trainer] up\n{run}")
    found = tables(tmp_path, own)
    assert found["runs"].select("attempt", "steps_logged").rows() == [(1, 2), (2, 2)]
    assert found["steps"].height == 4


def test_times_in_a_form_of_ones_own_date_the_run(tmp_path: Path) -> None:
    own = f'{HEAD}[[step]]\nline = "({{ts:%d.%m.%Y %H:%M:%S}}) step {{step}} loss {{loss}}"\n'
    lines = "".join(f"(31.01.2026 12:00:0{step}) step {step} loss 2.5\n" for step in range(1, 6))
    (tmp_path / "a.log").write_text(f"[acme-trainer]\n{lines}")
    (run,) = tables(tmp_path, own)["runs"].to_dicts()
    assert (str(run["started_at"]), str(run["ended_at"])) == ("2026-01-31 12:00:01", "2026-01-31 12:00:05")
