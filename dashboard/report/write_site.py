"""Writes a home as a static site: `python -m sweepscope.dashboard.report.write_site DIR ORIGIN RUNS GRIDS`.

A process of its own, as `write` is. Pages are written into a folder beside the wanted one, which takes its place at the
end: nobody ever sees half a site.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
from plotly.offline import get_plotlyjs

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.queries.query import Query
from sweepscope.dashboard.queries.reader import Answers, Reader
from sweepscope.dashboard.report import site as sites
from sweepscope.dashboard.report.page import style
from sweepscope.dashboard.report.section import Listing, Section
from sweepscope.dashboard.report.site import Site, SitePage
from sweepscope.dashboard.report.site_page import DRAW, DRAW_TEXT, PLOTLY, STYLE, page_html, start_html
from sweepscope.pipeline.errors import StoreError, SweepscopeError, UsageError
from sweepscope.pipeline.estimate.calibration.own_runs import with_own
from sweepscope.pipeline.store import published

MARK = "sweepscope-export.json"
"""Names a folder as one that a later export may replace."""
DATA = ("runs", "best_configs", "ranked_layouts", "grid_cells", "failure_rates", "sweep_cost", "retry_list")


def write(folder: Path, *, origin: str | None = None, most_runs: int = 200, most_grids: int = 20) -> dict[str, object]:
    """Write the site of the current home. Returns what it holds.

    Raises:
        UsageError: the folder holds something else, or the store has no run of the origin.
        StoreError: there is no store, or another version published it.
        OSError: the folder cannot be written.
    """
    if folder.exists() and not (folder / MARK).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} holds other files. Give an empty folder, or one that an export wrote before.")
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        written = _write_all(partial, origin, most_runs, most_grids)
        (partial / MARK).write_text(json.dumps(written), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {"site": str(folder / "index.html"), "bytes": size, **written}


def _write_all(partial: Path, origin: str | None, most_runs: int, most_grids: int) -> dict[str, object]:
    home = published.default_home()
    path = published.current(home)
    with published.connect(path) as connection:
        info = published.store_info(connection)
        con = Reader(connection, Answers())
        at = numbers.moment(info.published_at)
        about = f"Store version {info.version} of {at} UTC, sweepscope {info.package_version}"
        try:
            wanted = _origins(con, origin)
            counts = {}
            for one in wanted:
                of = sites.site(
                    con,
                    one,
                    LIGHT,
                    with_own(home / "calibration"),
                    most_runs=most_runs,
                    most_grids=most_grids,
                    stamp=f"store version {info.version}",
                )
                counts[one] = _write_origin(partial, of, wanted, about)
        except duckdb.Error as error:
            raise StoreError(
                f"The store {path} lacks what the pages need ({str(error).splitlines()[0]}): another version of "
                "sweepscope published it. Run `sweepscope ingest PATH` with this one: it publishes the store anew."
            ) from error
    _write_shared(partial, wanted[0])
    return {"version": info.version, "origins": counts}


def _origins(con: Reader, wanted: str | None) -> list[str]:
    """The wanted origin, else all that the dashboard offers. Raises UsageError where there is none."""
    offered = sites.origins(con)
    if not offered:
        raise UsageError("This store has no run yet. `sweepscope ingest PATH` reads some.")
    if wanted is not None and wanted not in offered:
        raise UsageError(f"This store shows no {wanted} runs. It has {', '.join(offered)} ones.")
    return [wanted] if wanted else offered


def _write_origin(partial: Path, of: Site, origins: list[str], about: str) -> int:
    """Writes the pages and data of one origin. Returns how many pages."""
    folder = partial / of.origin
    (folder / "data").mkdir(parents=True)
    for name in DATA:
        _rows(of, name).write_parquet(folder / "data" / f"{name}.parquet")
    others = [(f"../{one}/index.html", f"{one} runs") for one in origins if one != of.origin]
    menu, pages = sites.build(of)
    count = 0
    for page in _with_data(of, pages):
        text = page_html(page, about, menu, others, of.theme)
        (folder / page.file).write_text(text, encoding="utf-8")
        count += 1
    return count


def _rows(of: Site, name: str) -> pl.DataFrame:
    return Query(f"SELECT * FROM {name} WHERE origin = $origin", {"origin": of.origin}).run(of.con)


def _with_data(of: Site, pages: Iterator[SitePage]) -> Iterator[SitePage]:
    """The pages, the one of the runs with links to the data."""
    for page in pages:
        if page.file != "runs.html":
            yield page
            continue
        files = [f"data/{name}.parquet" for name in DATA]
        rows = pl.DataFrame({"name": DATA, "rows": [_rows(of, name).height for name in DATA]})
        listing = Listing("Parquet files", rows, ("name", "rows"), links=("name", files))
        text = "The rows behind these pages, with the columns of the store and in its units."
        yield SitePage(page.file, page.title, [*page.parts, Section("data", "Data", text, listings=[listing])])


def _write_shared(partial: Path, first: str) -> None:
    (partial / STYLE).write_text(style(LIGHT), encoding="utf-8")
    (partial / PLOTLY).write_text(get_plotlyjs(), encoding="utf-8")
    (partial / DRAW).write_text(DRAW_TEXT, encoding="utf-8")
    (partial / "index.html").write_text(start_html(f"{first}/index.html"), encoding="utf-8")


def main(folder: str, origin: str = "", runs: str = "200", grids: str = "20") -> int:
    """The exit code. An empty origin: all that the dashboard offers."""
    try:
        written = write(Path(folder), origin=origin or None, most_runs=int(runs), most_grids=int(grids))
    except SweepscopeError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except OSError as error:
        sys.stderr.write(f"{error.filename or folder}: {error.strerror}. Give another folder with --static.\n")
        return 1
    sys.stdout.write(json.dumps(written, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
