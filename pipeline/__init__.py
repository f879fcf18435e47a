"""Raw files in, a validated and queryable store out. Pure functions; Dagster and the command line are thin shells."""

import os

# Polars' allocator keeps freed memory for ten seconds, in which an ingest goes through all of its stages. It reads this
# when polars is imported, which is later.
os.environ.setdefault("_RJEM_MALLOC_CONF", "background_thread:true,dirty_decay_ms:200,muzzy_decay_ms:0")
