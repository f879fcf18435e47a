"""Definitions of the columns: type, unit, description and constraints, each stated once."""
