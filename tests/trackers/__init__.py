"""Files that trackers' own code wrote, and what its own reader finds in them: recorded by `record`, kept beside it."""
