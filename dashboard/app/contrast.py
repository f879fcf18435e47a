"""High contrast: where the system prefers more contrast, or the reader asks for it, which the browser remembers.

Streamlit's own widgets keep their colours, which stand out by 4.5 at least.
"""

from __future__ import annotations

import streamlit as st

from sweepscope.dashboard.widgets.basic import HIGH_CONTRAST

_CHOSEN = "contrast_chosen"
_KEY = "contrast_watch"
# What was chosen counts more than the system. A page is drawn before the browser that shows it is known.
_WATCH = """export default function (component) {
  const { known, chosen } = component.data;
  const key = "sweepscope.contrast";
  if (chosen) localStorage.setItem(key, chosen);
  const query = matchMedia("(prefers-contrast: more)");
  const wanted = () => localStorage.getItem(key) ?? (query.matches ? "more" : "usual");
  const tell = () => { if (wanted() !== known) component.setStateValue("contrast", wanted()); };
  tell();
  query.addEventListener("change", tell);
  return () => query.removeEventListener("change", tell);
}"""


def draw_switch() -> None:
    """The switch, below the pages."""
    st.session_state.setdefault(HIGH_CONTRAST, False)
    st.toggle("High contrast", key=HIGH_CONTRAST, on_change=_choose)


def watch() -> None:
    """Follows what the browser remembers, or its system prefers."""
    component = st.components.v2.component(_KEY, js=_WATCH)
    known = "more" if st.session_state.get(HIGH_CONTRAST) else "usual"
    data = {"known": known, "chosen": st.session_state.get(_CHOSEN)}
    component(key=_KEY, data=data, height=1, on_contrast_change=_follow)


def _choose() -> None:
    st.session_state[_CHOSEN] = "more" if st.session_state[HIGH_CONTRAST] else "usual"


def _follow() -> None:
    st.session_state[HIGH_CONTRAST] = st.session_state[_KEY]["contrast"] == "more"
