"""Whether a page may keep a dialect file in the home: only where no one else can open the pages."""

from __future__ import annotations

import os

from sweepscope.pipeline.inspection import correct_dialect
from sweepscope.pipeline.io.web_access import Access, is_loopback
from sweepscope.pipeline.store import published

VARIABLE = "SWEEPSCOPE_MAY_EDIT"
"""Not empty in the process of a server whose pages only this machine's user opens."""


def allow(host: str, access: Access) -> None:
    """State once, when a server starts, whether its pages may keep files.

    They may not where other machines reach the server, where a proxy gives it another name, or where visitors share a
    password.
    """
    is_own = is_loopback(host) and access.password is None and not access.names
    os.environ[VARIABLE] = "1" if is_own else ""


def may_keep() -> bool:
    """Whether a page may write a dialect file into the home."""
    return bool(os.environ.get(VARIABLE)) and correct_dialect.may_keep(published.default_home())
