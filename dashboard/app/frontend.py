"""What Streamlit's frontend loads later, loaded beside its first scripts, as tags for the first document.

The frontend loads what draws an element when the first element of its kind arrives. It shows a grey bar of one height
meanwhile, and all below moves when the element comes; plotly, five megabytes, takes a second to evaluate. So what most
pages begin with is there before its elements, and plotly is evaluated when the browser has nothing to do: once the
first page is drawn, if that had no chart yet. A visit that begins with a page that never has one loads plotly when it
goes on to another. The font of all texts is there before the first of them, which it would else wrap anew: all below
moved by a line.

Files are found by their names; of names that a later Streamlit does not have nothing is loaded beforehand.
"""

from __future__ import annotations

from pathlib import Path

from sweepscope.dashboard.navigation import PAGES

FIRST = ("Html", "PageLink", "Checkbox", "Selectbox", "BidiComponent")
"""What draws the sidebar, headlines, choices and the watchers at a page's end."""
CHARTS = "PlotlyChart"
FONT = "SourceSansVF-Upright"
_WITHOUT_CHARTS = {entry.url for entry in PAGES if not entry.has_charts}
_WHEN_IDLE = """<script type="module">
const isDrawn = () => document.querySelector("h1") && document.querySelector('[data-test-script-state="notRunning"]');
const whenIdle = window.requestIdleCallback ?? setTimeout;
const look = () => isDrawn() ? whenIdle(() => import("%s")) : setTimeout(look, 250);
look();
</script>"""


def tags(root: Path, page: str = "") -> str:
    """The tags, for the end of the document of a `page`, as in its address, whose folder `static` is `root`."""
    first = [address for kind in FIRST for address in _addresses(root, kind)]
    charts = [] if page in _WITHOUT_CHARTS else _addresses(root, CHARTS)
    return "".join(
        [
            *(
                f'<link rel="preload" as="font" type="font/woff2" crossorigin href="./static/media/{path.name}">'
                for path in sorted((root / "media").glob(f"{FONT}.*.woff2"))
            ),
            *(f'<script type="module" crossorigin src="{address}"></script>' for address in first),
            *(f'<link rel="modulepreload" crossorigin fetchpriority="low" href="{address}">' for address in charts),
            *(_WHEN_IDLE % address for address in charts),
        ]
    )


def _addresses(root: Path, kind: str) -> list[str]:
    return [f"./static/js/{path.name}" for path in sorted((root / "js").glob(f"{kind}.*.js"))]
