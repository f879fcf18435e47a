"""SQL with bound parameters, one module per subject: filters in, `Query` out. No Streamlit."""
