"""Sentences, one module per page: the rows on screen in, text out. Pure; `**bold**` marks the fact. No HTML, no
Streamlit, no query.
"""
