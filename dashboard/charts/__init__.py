"""One module per chart family: frame in, plotly figure out. No I/O, no streamlit."""
