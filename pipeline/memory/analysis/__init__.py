"""Analysis of snapshots: replay, peaks, live blocks by category, timelines and allocation sites."""
