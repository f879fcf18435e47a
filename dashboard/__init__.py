"""The Streamlit dashboard: queries -> view models -> texts and charts -> pages. Reads the published store only."""
