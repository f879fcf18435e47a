"""Facts as runs: attempts, settings and their precedence, outcome and summary."""
