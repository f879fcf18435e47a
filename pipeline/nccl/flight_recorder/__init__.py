"""Dumps of PyTorch's flight recorder as rows, and the hangs that the dumps of a job's ranks show."""
