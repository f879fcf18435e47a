"""MLPerf Training."""
