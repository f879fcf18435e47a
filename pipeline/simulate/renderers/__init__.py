"""One module per simulated framework: a run as the lines that the framework would print."""
