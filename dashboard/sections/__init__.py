"""Parts of pages that query, compute and draw."""
