"""Snapshots replayed: peaks, what was alive at them, timelines and allocation sites."""
