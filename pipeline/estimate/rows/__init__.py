"""Rows of runs or tables as questions to the estimator, and its answers as columns."""
