"""Where the lake of a home is shared with others: a folder of an object store, or nowhere."""

from __future__ import annotations

import json
import os
import tomllib

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.io.remote import is_url
from sweepscope.pipeline.store.durable_files import reading
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.text.secrets import hide

VARIABLE = "SWEEPSCOPE_LAKE"

STATE = "shared.json"
"""File in the folder of a lake that is a copy of a shared one, which it names."""


def shared_lake_url(home: Home) -> str | None:
    """URL of the lake that SWEEPSCOPE_LAKE names, or else `lake = "..."` in the home's `config/sweepscope.toml`.

    A copy stays one where neither names it: what was committed to it alone would be lost as soon as one does again.

    Raises:
        UsageError: that is no URL, has a credential in it, or the file is no TOML.
    """
    origin, given = VARIABLE, os.environ.get(VARIABLE) or None
    if given is None and home.settings.exists():
        origin = str(home.settings)
        try:
            given = tomllib.loads(home.settings.read_text(encoding="utf-8")).get("lake")
        except (OSError, ValueError) as error:
            raise UsageError(
                f'{home.settings} cannot be read: {error}. Write it as TOML: lake = "s3://...".'
            ) from error
    if given is None and (state := home.lake / STATE).exists():
        with reading(state, ValueError, KeyError):
            origin, given = str(state), json.loads(state.read_text(encoding="utf-8"))["url"]
    if given is None:
        return None
    if not isinstance(given, str) or not is_url(given):
        raise UsageError(f"{origin} names the lake {given!r}, which is no URL. Give one, such as s3://bucket/lake.")
    if hide(given) != given:
        raise UsageError(f"{origin} has a credential in the URL {hide(given)}. Give it by the environment instead.")
    return given.rstrip("/")
