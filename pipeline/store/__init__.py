"""The lake (Delta tables, pinned by releases) and the store published from it (versioned DuckDB files)."""
