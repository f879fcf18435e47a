"""Modules of Streamlit's frontend that a page needs soon after it opens, named so that the browser loads them at once.

The frontend asks for the code of a kind of element when the first of that kind arrives from the server. For a chart
that is plotly, five megabytes: most of the wait for a first page was for its parsing, which began when all else was
there. Named in the document, it is loaded and parsed on another thread while the page's script runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_ELEMENTS = ("PlotlyChart", "Html", "PageLink", "Selectbox", "BidiComponent")
"""Chunks of the elements that nearly all pages have, by their names in Streamlit's build, before the hash."""
_IMPORTED = re.compile(r"""(?:from|import)\s*["']\./([\w.-]+\.js)["']""")


def preloaded(folder: Path) -> list[Path]:
    """The chunks of those elements in Streamlit's build, and what they import, the largest first.

    Empty where its files are named in another way: then they are loaded when they are needed.
    """
    found: set[Path] = set()
    wanted = [path for name in _ELEMENTS for path in folder.glob(f"{name}.*.js")]
    while wanted:
        path = wanted.pop()
        if path not in found and path.is_file():
            found.add(path)
            wanted += [folder / name for name in _IMPORTED.findall(path.read_text(encoding="utf-8"))]
    return sorted(found, key=lambda path: (-path.stat().st_size, path.name))


def links(paths: Iterable[Path]) -> str:
    """HTML that has a browser load these modules, which lie in `static/js`.

    >>> links([Path("Html.a1.js")])
    '<link rel="modulepreload" crossorigin href="./static/js/Html.a1.js">'
    """
    return "".join(f'<link rel="modulepreload" crossorigin href="./static/js/{path.name}">' for path in paths)
