"""What `data/` says: accelerators, clusters, models and their names, vocabulary, rules.

Rows of a run belong in `pipeline.derive`.
"""
