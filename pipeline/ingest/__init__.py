"""One batch: discover, plan, read, resume, assemble and validate.

Nothing here prints or knows Dagster.
"""
