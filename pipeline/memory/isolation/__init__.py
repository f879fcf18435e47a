"""Snapshots read in a process of their own, with limits on memory, processor and time."""
