"""The Streamlit dashboard: queries -> charts -> pages. Reads the published store only."""
