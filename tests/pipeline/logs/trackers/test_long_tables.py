"""Tables with a row for each value."""

from __future__ import annotations

from tests.pipeline.ingest_in_memory import tables_of

STEPS = 30
LOSSES = [round(9.0 / (1 + step / 10), 4) for step in range(STEPS)]


def comet(run: str) -> str:
    rows = (
        f"{run},{name},{value},{1_741_079_520_000 + 2000 * step},{step}\n"
        for step, loss in enumerate(LOSSES)
        for name, value in (("train_loss", loss), ("learning_rate", 1e-3), ("eval_loss", 9.9))
    )
    return "".join(rows)


def test_every_run_of_a_table_of_values_is_a_run() -> None:
    text = "experimentKey,metricName,metricValue,timestamp,step\n" + comet("one") + comet("two").replace("9.0,", "9.5,")
    tables = tables_of({"export.csv": text})
    assert tables["runs"]["steps_logged"].to_list() == [STEPS, STEPS]
    assert tables["runs"]["step_time_s"].to_list() == [2.0, 2.0]
    steps = tables["steps"]
    assert steps["learning_rate"].unique().to_list() == [1e-3]
    assert steps["loss"].to_list()[:STEPS] == LOSSES


def test_a_series_is_named_by_its_file() -> None:
    text = "step,value,timestamp\n" + "".join(
        f"{step},{loss},2025-03-04T09:12:{step:02d}\n" for step, loss in enumerate(LOSSES)
    )
    runs = tables_of({"NEP-12/train_loss.csv": text})["runs"]
    assert (runs["steps_logged"].item(), runs["step_time_s"].item()) == (STEPS, 1.0)


def test_prices_and_values_of_other_things_are_no_runs() -> None:
    files = {
        "prices.csv": "Date,Step,Value\n2024-01-01,1,2.5\n2024-01-02,2,2.6\n",
        "table.csv": "name,value,step\nwidth,3,1\nheight,4,2\n",
        "step_value.csv": "step,value\n1,2\n2,3\n",
    }
    tables = tables_of(files)
    assert tables["runs"].is_empty()
    assert tables["rejects"].is_empty()
