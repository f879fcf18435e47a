"""Facts from `data/`: accelerators, clusters, models and their names, vocabulary, rules, and how layouts are written.

Rows of a run belong in `pipeline.derive`.
"""
