"""Source of truth for every table: columns, vocabularies, grain, keys.

Nothing here does I/O or imports another package of ours. DDL, pandera schemas, the data dictionary and the
dashboard's labels are derived from this package, so a column is described in exactly one place.
"""
