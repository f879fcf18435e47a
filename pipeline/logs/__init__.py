"""Text in, frames out: no filesystem, DuckDB, Dagster or Streamlit in here."""
