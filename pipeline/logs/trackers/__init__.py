"""Runs as experiment trackers keep them in files: scalars by step, the configuration, how the run ended."""
