"""Raw files in, a validated and queryable store out. Pure functions; Dagster and the command line are thin shells."""
