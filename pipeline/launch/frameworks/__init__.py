"""One module per framework: its configuration of a planned run, as its own source code reads it."""
