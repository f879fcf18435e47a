"""Scripts of Streamlit's frontend that the browser gets beside the first ones, as tags for the first document.

The frontend loads what draws an element when the first element of its kind arrives. It shows a grey bar of one height
meanwhile, and all below moves when the element comes; plotly, five megabytes, takes a second to evaluate. So what most
pages begin with is there before its elements, and plotly is evaluated when the browser has nothing to do: once the
first page is drawn, if that had no chart. Files are found by their names; of names that a later Streamlit does not have
nothing is loaded beforehand.
"""

from __future__ import annotations

from pathlib import Path

FIRST = ("Html", "PageLink", "Checkbox", "Selectbox", "BidiComponent")
"""What draws the sidebar, headlines, choices and the watchers at a page's end."""
CHARTS = "PlotlyChart"
_WHEN_IDLE = """<script type="module">
const isDrawn = () => document.querySelector("h1") && document.querySelector('[data-test-script-state="notRunning"]');
const whenIdle = window.requestIdleCallback ?? setTimeout;
const look = () => isDrawn() ? whenIdle(() => import("%s")) : setTimeout(look, 250);
look();
</script>"""


def tags(root: Path) -> str:
    """The tags, for the end of a document whose folder `static` is `root`."""
    first = [address for kind in FIRST for address in _addresses(root, kind)]
    charts = _addresses(root, CHARTS)
    return "".join(
        [
            *(f'<script type="module" crossorigin src="{address}"></script>' for address in first),
            *(f'<link rel="modulepreload" crossorigin fetchpriority="low" href="{address}">' for address in charts),
            *(_WHEN_IDLE % address for address in charts),
        ]
    )


def _addresses(root: Path, kind: str) -> list[str]:
    return [f"./static/js/{path.name}" for path in sorted((root / "js").glob(f"{kind}.*.js"))]
