"""Queries that users type, run in a process with limits."""
