"""What a reader's browser remembers of the last visit: how many runs there were, so that new ones can be counted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import streamlit as st

from sweepscope.pipeline.store import published

# The browser's own memory, because a server has many readers. A visit lasts as long as its tab, reloads included.
_REMEMBER = """export default function (component) {
  const { key, now } = component.data;
  let before = sessionStorage.getItem(key);
  if (before === null) {
    before = localStorage.getItem(key) ?? "";
    sessionStorage.setItem(key, before);
  }
  localStorage.setItem(key, JSON.stringify(now));
  if (before && before !== component.data.known) component.setStateValue("before", before);
}"""
_KEY = "last_visit"


def last_visit(now: Mapping[str, object]) -> dict[str, Any] | None:
    """What `now` was at the last visit to this home; None at the first one. Has the browser remember `now`."""
    state = st.session_state.get(_KEY)
    known = (state or {}).get("before", "")
    home = hashlib.sha256(str(published.default_home()).encode()).hexdigest()[:12]
    component = st.components.v2.component("last_visit", js=_REMEMBER)
    data = {"key": f"sweepscope.visit.{home}", "now": dict(now), "known": known}
    component(key=_KEY, data=data, height=1, on_before_change=lambda: None)
    try:
        before = json.loads(known) if known else None
    except ValueError:  # another program's, or a damaged one
        return None
    return before if isinstance(before, dict) else None
