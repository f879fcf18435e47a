"""One module per subject: filters in, `Query` out. SQL with bound parameters, no streamlit."""
