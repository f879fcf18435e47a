"""What every page shares: the shell around it and the connection to the store."""
