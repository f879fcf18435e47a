"""Rows of `runs` completed: names, layout, parameters, MFU, GPU-hours and identifiers."""
