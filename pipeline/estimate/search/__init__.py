"""Layouts enumerated and ranked, and what changes when one setting does."""
