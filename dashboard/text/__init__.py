"""One module per page: the rows on screen in, sentences out. Pure; `**bold**` marks the fact. No HTML, no streamlit."""
