"""The pages and their groups. A new page is one file in `app_pages/` and one entry here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A page: its group in the menu ("" = none), its title, file and URL. Hidden ones are reached by link.

    `has_charts`: whether it may draw one, so that a visit that begins with it loads what draws charts beforehand.
    """

    group: str
    title: str
    file: str
    url: str
    is_hidden: bool = False
    has_charts: bool = True

    @property
    def path(self) -> str:
        """Path relative to streamlit_app.py, as `st.page_link` and `AppTest.switch_page` take it."""
        return f"app_pages/{self.file}.py"


PAGES = (
    Entry("", "Overview", "overview", "overview"),
    Entry("Choose", "Best configurations", "best", "best"),
    Entry("Choose", "Scaling", "scaling", "scaling"),
    Entry("Choose", "Compare", "compare", "compare"),
    Entry("Choose", "Trade-offs", "tradeoffs", "tradeoffs"),
    Entry("Choose", "Explorer & advisor", "explorer", "explorer"),
    Entry("Choose", "Plans", "plans", "plans", has_charts=False),
    Entry("Explain", "Estimator", "estimator", "estimator"),
    Entry("Explain", "Frontier", "frontier", "frontier"),
    Entry("Diagnose", "Failures & cost", "failures", "failures"),
    Entry("Diagnose", "Memory", "memory", "memory"),
    Entry("Diagnose", "Snapshot", "snapshot", "snapshot", is_hidden=True),
    Entry("Diagnose", "Network", "network", "network"),
    Entry("Diagnose", "Hang", "hang", "hang", is_hidden=True),
    Entry("Diagnose", "Nodes", "node", "node", has_charts=False),
    Entry("Diagnose", "Running now", "live", "live", has_charts=False),
    Entry("Diagnose", "Runs", "runs", "runs", has_charts=False),
    Entry("Diagnose", "Run", "run", "run", is_hidden=True),
    Entry("Diagnose", "Log", "log", "log", is_hidden=True, has_charts=False),
    Entry("Data", "SQL", "sql", "sql", has_charts=False),
    Entry("Data", "Data health", "health", "health", has_charts=False),
)
