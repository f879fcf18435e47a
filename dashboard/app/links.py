"""Links inside the app, followed in the open tab: a load of the whole frontend takes longer than most pages.

Streamlit draws a page anew when the reader goes back or on in the browser's history, for which the browser sends the
event `popstate`. A link adds its address to the history and sends the same event, so that its page is drawn as after
"back", and "back" leads from it to the page that it was on. `st.switch_page` with parameters leaves two steps in the
history instead, the first of them without the list's search.
"""

from __future__ import annotations

import streamlit as st

_GO = """
const go = (address) => {
  if (address === window.location.href) return;
  history.pushState({}, "", address);
  window.dispatchEvent(new PopStateEvent("popstate"));
  document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);
};
"""
# Another tab and another site are the browser's own. Streamlit takes the target out of a link that opens here.
_WATCH = (
    _GO
    + """
export default function () {
  const follow = (event) => {
    const isOther = event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
    const link = event.target.closest?.("[data-testid=stHtml] a[href]:not([target=_blank])");
    if (!link || isOther || event.defaultPrevented || !link.href.startsWith(new URL(".", location.href).href)) return;
    event.preventDefault();
    go(link.href);
  };
  document.addEventListener("click", follow);
  return () => document.removeEventListener("click", follow);
}"""
)
_FOLLOW = (
    _GO
    + """
export default function (component) {
  go(new URL(component.data, document.baseURI).href);
}"""
)


def watch() -> None:
    """Has links inside the app followed without a load of the frontend."""
    st.components.v2.component("link_watch", js=_WATCH)(key="link_watch", height=1)


def follow(url: str) -> None:
    """Takes the reader to another address of this app, as if a link had been clicked."""
    st.components.v2.component("follow_link", js=_FOLLOW)(key="follow_link", data=url, height=1)
