"""The only Dagster code. An asset reads like a table of contents: resource, pure function, metadata."""
