"""Which tables have a row for each step."""

from __future__ import annotations

import pytest

from sweepscope.pipeline.logs.inference.step_tables import is_step_table, shared_settings
from tests.pipeline.ingest_in_memory import tables_of


def keras(first: int = 0) -> str:
    rows = (f"{epoch},0.{epoch:02d},{9 / (1 + epoch)},{9.5 / (1 + epoch)}\n" for epoch in range(first, 30))
    return "epoch,accuracy,loss,val_loss\n" + "".join(rows)


@pytest.mark.parametrize("name", ["training.csv", "tiny_tp2.csv", "a/history.csv"])
def test_a_table_of_steps_is_read_as_a_log_whatever_its_name(name: str) -> None:
    runs = tables_of({name: keras()})["runs"]
    assert runs["steps_logged"].to_list() == [30]


def test_tables_of_evaluations_runs_and_data_are_none() -> None:
    runs = "name,steps,tp,pp,loss,tokens_per_s\n" + "".join(f"{n},{n}00,{n},1,2.{n},9{n}00\n" for n in range(1, 5))
    data = "id,text,label\n1,a,0\n2,b,1\n3,c,1\n"
    falling = "epoch,loss\n3,2.5\n2,2.6\n1,2.7\n"
    assert not any(map(is_step_table, (runs, data, falling, "epoch,loss\n1,2.5\n", "", "\ufeff")))
    assert tables_of({"eval.csv": keras()})["runs"].is_empty()


def test_a_layout_that_all_rows_repeat_is_that_of_the_run_and_one_that_differs_is_of_runs() -> None:
    rows = [(at, 5 - at / 10, 2, 8) for at in range(1, 9)]
    one = "step,loss,cfg/tp,cfg/mbs\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in rows)
    several = "step,loss,cfg/tp,cfg/mbs\n" + "".join(f"{a},{b},{c * a},{d}\n" for a, b, c, d in rows)
    assert (is_step_table(one), shared_settings(one)) == (True, {"tp": "2", "mbs": "8"})
    assert not is_step_table(several)
    run = tables_of({"a/metrics.csv": one})["runs"]
    assert run.select("steps_logged").row(0) == (8,)


def test_an_export_with_very_many_columns_is_read() -> None:
    others = [f"monitor/device_{at}/utilisation_of_the_memory_controller" for at in range(60)]
    header = ",".join(["step", "loss", *others])
    rows = "".join(f"{at},{5 - at / 10}{',0.5' * len(others)}\n" for at in range(1, 31))
    runs = tables_of({"a/metrics.csv": f"{header}\n{rows}"})["runs"]
    assert runs["steps_logged"].to_list() == [30]
