"""Tables of one's own with a row per run (`results.csv`): what their columns mean, and their rows as runs. Pure."""
