"""A sweep that never ran: run directories as the frameworks would have written them, with the truth beside them.

For the demo, the tests and load. `generate` draws runs (layouts, physics, failures), a `render_*` module prints each
one the way its framework does, `noise` disturbs the text without changing what it says, `sweep` writes directories.
Rows that come from here have `origin = 'simulated'`: the marker file says so. Nothing here parses anything.
"""
