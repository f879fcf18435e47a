"""Plotly figures, one module per family: frame in, figure out. No I/O, no Streamlit."""
