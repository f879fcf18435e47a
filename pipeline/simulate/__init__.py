"""Simulated sweeps: run directories as the frameworks would have written them, with the ground truth beside them.

For the demo, tests and load tests. `generate` draws runs (layouts, physics, failures), `renderers` print each one as
its framework does, `noise` disturbs the text without changing its values, `sweep` writes directories. The marker file
gives their rows `origin = 'simulated'`. Nothing here parses anything.
"""
