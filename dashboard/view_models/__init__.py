"""What a page shows, computed from the rows of its queries. No Streamlit, no sentences, no SQL."""
