"""Lines of any dialect as facts: cleaning, prefiltering, detection and extraction."""
