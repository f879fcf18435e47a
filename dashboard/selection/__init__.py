"""What a reader has selected: filters, slices and their place in the URL."""
