"""The order of the steps of a batch, as done in this process (`run`), and by Dagster, whose only code this is."""
