"""Streamlit parts without a query: tables, lists, bars, links, the grid."""
