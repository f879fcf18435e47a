"""What a reader has selected: filters and slices, and how the URL holds them."""
