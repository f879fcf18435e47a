"""The least that a Streamlit page costs: a headline, a choice kept in the address, and one chart; no data, no style.

`tests.benchmarks.pages` runs it as a server beside those of the pages: what its visits take is Streamlit's and the
browser's own share of theirs.
"""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

st.set_page_config(page_title="Bare - page")
st.title("Bare")
chosen = st.selectbox("Points", [20, 21], key="points", bind="query-params")
st.html(f'<p class="ss-answer">{chosen} points</p>')
st.plotly_chart(go.Figure(go.Scatter(x=list(range(chosen)), y=list(range(chosen)))))
