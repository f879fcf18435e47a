"""Patterns of lines that show how a run ended, whatever framework printed them."""
