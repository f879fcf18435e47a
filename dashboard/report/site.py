"""The pages of a static site over one store: per origin its answers, every grid, and runs, as sections of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import polars as pl

from sweepscope.dashboard.charts import heatmap
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.emphasis import without_marks
from sweepscope.dashboard.format.metrics import offered
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.queries import cells as cell_queries
from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.queries.runs import Search
from sweepscope.dashboard.queries.runs import page as runs_page
from sweepscope.dashboard.queries.runs import total as runs_total
from sweepscope.dashboard.queries.slices import runs_of, slices
from sweepscope.dashboard.report import grids, outcomes, question, run_section
from sweepscope.dashboard.report.comparison import comparison
from sweepscope.dashboard.report.memory import memory
from sweepscope.dashboard.report.network import network
from sweepscope.dashboard.report.section import Listing, Picture, Section
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.selection.slices import Slice, offered_origins, others, resolve_slice
from sweepscope.dashboard.text import best as best_texts
from sweepscope.dashboard.text import cell as cell_texts
from sweepscope.dashboard.text import overview as overview_texts
from sweepscope.dashboard.text import runs as runs_texts
from sweepscope.pipeline.estimate.rows.asking import ChooseProfile

MOST_LISTED = 2_000
"""Runs in the list of a site; the data beside it holds all."""
_RUNS = names(
    "run_id status model num_nodes num_gpus accelerator layout framework mfu tokens_per_s_per_gpu usd_per_m_tokens "
    "step_time_s mem_peak_reserved_bytes seq_len gbs_tokens sweep started_at quarantine_reason"
)
_RANKED = names(
    "rank_in_cell model num_nodes layout framework mfu tokens_per_s_per_gpu usd_per_m_tokens step_time_s "
    "mem_peak_reserved_bytes repeats run_noise recompute precision run_id"
)


@dataclass(frozen=True)
class SitePage:
    """One file: its name, its title in the menu ("" = reached by a link only), and its sections."""

    file: str
    title: str
    parts: Sequence[Section]


@dataclass(frozen=True)
class Site:
    """What the pages of one origin are made from: `found` are all slices, `run_ids` the runs that have a page,
    `most_grids` how many grids, and how
    many pairs of winner and runner-up, have one; `stamp` is printed into charts.
    """

    con: Reader
    theme: Theme
    choose: ChooseProfile
    origin: str
    found: pl.DataFrame
    run_ids: frozenset[str]
    most_grids: int
    stamp: str

    def run_file(self, run_id: str | None) -> str | None:
        """Name of a run's page, None where it has none."""
        return f"run-{run_id}.html" if run_id in self.run_ids else None


def origins(con: Reader) -> list[str]:
    """The origins that get pages, the one that the dashboard shows first at the front."""
    rows = con.frame("SELECT DISTINCT origin FROM runs", {})["origin"].to_list()
    first, _ = resolve_slice(Filters(), slices().run(con))
    return sorted(offered_origins(rows), key=lambda origin: first is None or origin != first.origin)


def site(
    con: Reader, origin: str, theme: Theme, choose: ChooseProfile, *, most_runs: int, most_grids: int, stamp: str
) -> Site:
    """The site of one origin: winners and runners-up have pages first, then the newest runs, `most_runs` in all."""
    ids = con.frame(_FIRST_RUNS, {"origin": origin, "most": most_runs})["run_id"] if most_runs else pl.Series([])
    return Site(con, theme, choose, origin, slices().run(con), frozenset(ids), most_grids, stamp)


_FIRST_RUNS = """WITH ahead AS (
  SELECT run_id FROM best_configs WHERE origin = $origin
  UNION SELECT runner_up_run_id FROM best_configs WHERE origin = $origin
)
SELECT run_id
FROM runs
WHERE origin = $origin AND origin <> 'published' AND duplicate_of IS NULL
ORDER BY run_id IN (FROM ahead) DESC, coalesce(ended_at, started_at) DESC NULLS LAST, run_id
LIMIT $most"""


_PAIRS = """SELECT model, num_nodes, num_gpus, layout, runner_up_layout, margin, chance_best, run_id, runner_up_run_id
FROM best_configs
WHERE origin = $origin AND runner_up_run_id IS NOT NULL
ORDER BY runs_tried DESC, model, num_gpus, run_id
LIMIT $most"""


def build(of: Site) -> tuple[list[tuple[str, str]], Iterator[SitePage]]:
    """The menu (file and title), and the pages one at a time, as a site has more charts than fit into memory."""
    made = [(file, title, draw(of)) for file, title, draw in _FURTHER]
    further = [(file, title, part) for file, title, part in made if part is not None]
    grid = [("grid-1.html", "Best configurations")] if of.origin in of.found["origin"] else []
    pairs = of.con.frame(_PAIRS, {"origin": of.origin, "most": of.most_grids})
    compared = [("compare.html", "Compare")] if pairs.height else []
    others_listed = [(file, title) for file, title, _ in further]
    listed = [("index.html", "Overview"), *grid, *compared, *others_listed, ("runs.html", "Runs")]
    return listed, chain(_pages(of, further), _comparisons(of, pairs))


def _comparisons(of: Site, pairs: pl.DataFrame) -> Iterator[SitePage]:
    """The list of cells with a runner-up, and a page for each of them: the winner against it."""
    if pairs.is_empty():
        return
    files = [f"compare-{number}.html" for number in range(1, pairs.height + 1)]
    columns = names("model num_nodes num_gpus layout runner_up_layout margin chance_best")
    listing = Listing(numbers.count(pairs.height, "cell"), pairs, columns, most=pairs.height, links=("layout", files))
    text = "The winner of each cell against its runner-up: what is faster, how sure that is, and what explains it."
    yield SitePage("compare.html", "Compare", [Section("pairs", "Compare", text, listings=[listing])])
    for file, row in zip(files, pairs.iter_rows(named=True), strict=True):
        part = comparison(of.con, (row["run_id"], row["runner_up_run_id"]), of.theme)
        if part is not None:
            yield SitePage(file, "", [_stamped(of, part, part.meta)])


def _pages(of: Site, further: Sequence[tuple[str, str, Section]]) -> Iterator[SitePage]:
    scope = Scope(of.origin, None)
    chosen, _ = resolve_slice(Filters(origin=of.origin, sweep="*"), of.found)
    every = [] if chosen is None else [chosen, *(other.slice for other in others(chosen, of.found))]
    shown = every[: of.most_grids]
    files = [f"grid-{number}.html" if one in shown else None for number, one in enumerate(every, start=1)]
    yield SitePage("index.html", "Overview", list(_overview(of, chosen, every, files, scope)))
    for number, one in enumerate(shown, start=1):
        yield SitePage(f"grid-{number}.html", "Best configurations" if number == 1 else "", _grid(of, one))
    for file, title, part in further:
        yield SitePage(file, title, [_stamped(of, part, f"{of.origin} runs")])
    yield SitePage("runs.html", "Runs", [_runs(of)])
    for run_id in sorted(of.run_ids):
        part = run_section.run(of.con, run_id, of.theme)
        yield SitePage(f"run-{run_id}.html", "", [_stamped(of, part, without_marks(part.meta))])


def _overview(
    of: Site, chosen: Slice | None, every: Sequence[Slice], files: Sequence[str | None], scope: Scope
) -> Iterator[Section]:
    parts = (
        question.question(of.con, scope),
        grids.headline(of.con, chosen, of.origin),
        question.next_steps(of.con, scope, of.choose),
    )
    for part in parts:
        if part is not None:
            linked = [_linked(of, listing) for listing in part.listings]
            yield _stamped(of, replace(part, listings=linked), f"{of.origin} runs")
    if every:
        rows = pl.DataFrame({"grid": [overview_texts.slice_words(one) for one in every]})
        listing = Listing(numbers.count(len(every), "grid"), rows, ("grid",), most=len(every), links=("grid", files))
        left = files.count(None)
        text = f"Those with most results have pages; {numbers.count(left, 'more grid')} in the data." if left else ""
        yield Section("grids", "Grids", text or "Each opens on its cells.", listings=[listing])


def _grid(of: Site, one: Slice) -> list[Section]:
    """Its cells in every metric that they have, all completed layouts, and scaling."""
    of_origin = runs_of(one.origin).run(of.con)["runs"].item()
    first = grids.best(of.con, one, of.theme, of_origin)
    grid = grids.whole_grid(of.con, one)
    hovers = {
        metric.key: [cell_texts.hover(row, metric) for row in grid.iter_rows(named=True)] for metric in offered(grid)
    }
    charts = [
        Picture(
            metric.label,
            partial(heatmap.draw, grid, metric, of.theme, hovers=hovers[metric.key]),
            best_texts.grid_alt(grid, metric),
        )
        for metric in offered(grid)[1:]  # the first is drawn already
    ]
    query = cell_queries.ranking(one, Filters())
    ranked = query.run(of.con)
    listings = [*first.listings, Listing("All completed layouts", ranked, _RANKED, most=500)]
    best = replace(
        first,
        title="Best configurations",
        pictures=[*first.pictures, *charts],
        listings=[_linked(of, listing) for listing in listings],
        queries={**first.queries, "Ranking": query},
    )
    conditions = overview_texts.slice_words(one)
    return [_stamped(of, part, f"{one.origin} · {conditions}") for part in (best, grids.scales(of.con, one, of.theme))]


def _runs(of: Site) -> Section:
    search = Search(facets={"origin": [of.origin]})
    query = runs_page(search, sort="newest", rows=MOST_LISTED, offset=0)
    rows = query.run(of.con)
    total = runs_total(search).run(of.con).row(0, named=True)
    left = total["runs"] - rows.height
    older = f"; {numbers.count(left, 'older run')} in the data below" if left > 0 else ""
    return Section(
        "runs",
        "Runs",
        runs_texts.answer(total, total, is_narrowed=False),
        f"the newest first{older}",
        (of.origin,),
        listings=[_linked(of, Listing(numbers.count(rows.height, "run"), rows, _RUNS, most=MOST_LISTED))],
        queries={"Runs": query},
    )


def _linked(of: Site, listing: Listing) -> Listing:
    """The listing with its runs, or else its layouts, leading to the pages of their runs."""
    if "run_id" not in listing.frame.columns:
        return listing
    column = next((name for name in ("run_id", "layout") if name in listing.columns), None)
    if column is None:
        return listing
    return replace(listing, links=(column, [of.run_file(run_id) for run_id in listing.frame["run_id"]]))


def _stamped(of: Site, part: Section, conditions: str) -> Section:
    """The section with what was chosen, and the version of the store, printed into its charts."""
    printed = " · ".join(filter(None, (part.title, conditions, of.stamp)))
    return replace(part, pictures=[replace(picture, conditions=printed) for picture in part.pictures])


_FURTHER: tuple[tuple[str, str, Callable[[Site], Section | None]], ...] = (
    ("failures.html", "Failures & cost", lambda of: outcomes.failed(of.con, of.origin, None, of.theme)),
    ("memory.html", "Memory", lambda of: memory(of.con, of.origin, of.theme)),
    ("network.html", "Network", lambda of: network(of.con, of.origin, of.theme)),
    ("theory.html", "Distance to theory", lambda of: outcomes.theory(of.con, of.origin, None, of.theme)),
    ("frontier.html", "Frontier", lambda of: outcomes.published(of.con, of.origin, of.theme)),
)
