"""Tables in texts: what the usual libraries print comes back cell by cell."""

from __future__ import annotations

import io

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich import box
from rich.console import Console
from rich.table import Table
from tabulate import tabulate

from sweepscope.pipeline.logs.result_tables.read import read_sheets, read_text
from sweepscope.pipeline.logs.result_tables.text_tables import tables_in

NAMES = ["model", "gpus", "tp", "dp", "mbs", "tok/s/gpu", "MFU (%)"]
FORMS = (
    *("plain", "simple", "github", "grid", "simple_grid", "rounded_grid", "heavy_grid", "mixed_grid", "double_grid"),
    *("fancy_grid", "outline", "simple_outline", "rounded_outline", "heavy_outline", "double_outline", "fancy_outline"),
    *("pipe", "orgtbl", "jira", "presto", "pretty", "psql", "rst"),
)
BOXES = (box.ASCII, box.SQUARE, box.MINIMAL, box.SIMPLE, box.HORIZONTALS, box.ROUNDED, box.HEAVY_HEAD, box.DOUBLE_EDGE)


@st.composite
def bodies(draw: st.DrawFn) -> list[list[str]]:
    """Rows of a table of runs, as texts; the last two cells of some are empty."""
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        degrees = [str(draw(st.sampled_from([1, 2, 4, 8, 16, 128]))) for _ in range(4)]
        rate, share = f"{draw(st.floats(100, 20_000)):.1f}", f"{draw(st.floats(10, 70)):.2f}"
        is_done = draw(st.booleans()) or not rows
        rows.append(
            [draw(st.sampled_from(["7b", "a model of 70b"])), *degrees, *([rate, share] if is_done else ["", ""])]
        )
    return rows


@settings(max_examples=15)
@given(bodies(), st.sampled_from(FORMS))
def test_what_tabulate_prints_comes_back(rows: list[list[str]], form: str) -> None:
    text = (
        f"Sweep of Friday\n\n{tabulate(rows, headers=NAMES, tablefmt=form, disable_numparse=True)}\n\nBest: the first\n"
    )
    (table,) = tables_in(text)
    assert [cells for _, cells in table.rows] == [NAMES, *rows]


@settings(max_examples=15)
@given(bodies(), st.sampled_from(BOXES), st.booleans(), st.sampled_from([60, 100]))
def test_what_rich_prints_comes_back_even_where_cells_are_wrapped(
    rows: list[list[str]], frame: box.Box, has_lines: bool, width: int
) -> None:
    has_lines &= frame is not box.SIMPLE  # of which the lines are empty ones
    if not has_lines or frame in {box.MINIMAL, box.HORIZONTALS}:
        width = 100  # nothing shows where a wrapped row ends
    table = Table(title="Results", box=frame, show_lines=has_lines)
    for name in NAMES:
        table.add_column(name)
    for row in rows:
        table.add_row(*(cell or "-" for cell in row))
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    found = read_text(f"launching trial 1\ndone\n{console.file.getvalue()}\n")  # type: ignore[attr-defined] - this console writes to a StringIO
    assert found is not None
    assert found.runs["mbs"].to_list() == [int(row[4]) for row in rows]
    assert found.runs["tokens_per_s_per_gpu"].to_list() == [float(row[5]) if row[5] else None for row in rows]


@settings(max_examples=15)
@given(bodies(), st.sampled_from([40, 80, 200]))
def test_what_pandas_prints_comes_back_in_one_block_or_several(rows: list[list[str]], width: int) -> None:
    rows *= 4  # an index of two digits
    frame = pd.DataFrame(rows, columns=NAMES).replace("", "NaN")
    with pd.option_context("display.width", width, "display.max_columns", None):
        text = f"Collected {len(rows)} results\n{frame}\nsaved\n"
    found = read_text(text)
    assert found is not None
    assert found.runs["dp"].to_list() == [int(row[3]) for row in rows]
    assert found.runs["mfu_logged"].to_list() == [
        pytest.approx(float(row[6]) / 100) if row[6] else None for row in rows
    ]


def test_several_tables_of_one_document_are_read_with_their_lines() -> None:
    table = "| tp | mbs | tok/s |\n|---:|:---:|---|\n| `2` | 4 | **9,100** |\n| 4 | 4 | ❌ OOM |\n"
    found = read_text(f"# A\n\n{table}\nText | with | bars\n\n## B\n\n{table}")
    assert found is not None
    assert found.runs["line_no"].to_list() == [5, 6, 14, 15]
    assert found.runs["status"].to_list() == ["completed", "oom"] * 2
    assert found.runs["tokens_per_s"].to_list() == [9100.0, None] * 2
    assert read_text(table, first_line=101).runs["line_no"].to_list() == [103, 104]  # type: ignore[union-attr] - the table is read


def test_a_cell_that_is_missing_is_empty_where_columns_are_aligned() -> None:
    (table,) = tables_in("gpus  tp  mbs  tok/s   note\n   8   2        900.5  slow\n   8   4    1          none\n")
    assert [cells for _, cells in table.rows[1:]] == [["8", "2", "", "900.5", "slow"], ["8", "4", "1", "", "none"]]


def test_sheets_have_titles_and_rows_below_their_tables() -> None:
    head, mean = ["gpus", "tp", "tok/s", "status"], ["mean", "", "9", ""]
    sheets = [
        [["Sweep", "", "", ""], ["", "", "", ""], head, ["8", "2", "10", "ok"], ["", "", "", ""], mean],
        [head, ["16", "4", "", "OOM"]],
        [["item", "price", "count", "sum"], ["gpu", "100", "2", "200"]],
        [],
    ]
    found = read_sheets(sheets)
    assert found is not None
    assert found.runs.select("line_no", "num_gpus", "tp", "status").rows() == [
        (4, 8, 2, "completed"),
        (8, 16, 4, "oom"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "| model | params | license |\n|---|---|---|\n| a | 7B | MIT |\n",
        "| model | gpus | mmlu |\n|---|---|---|\n| a | 8 | 60.1 |\n",
        "gpus  tp  concurrency  output tok/s  ttft (ms)\n---- ---- ---- ---- ----\n8  2  16  900  31.2\n",
        "step 1 | loss 2.5 | lr 1e-4 | tok/s 100\nstep 2 | loss 2.4 | lr 1e-4 | tok/s 101\n",
        "we ran with four gpus and the\nresult was 2 times 4 as fast\n",
        "",
    ],
)
def test_texts_without_a_table_of_runs(text: str) -> None:
    assert read_text(text) is None
