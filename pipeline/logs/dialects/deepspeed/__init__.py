"""DeepSpeed, and what dialects on top of it share."""
