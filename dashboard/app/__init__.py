"""The shell around every page, and the connection to the store."""
