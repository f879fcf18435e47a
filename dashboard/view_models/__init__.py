"""Rows of queries as what a page shows; no Streamlit, no sentence."""
