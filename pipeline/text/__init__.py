"""Bytes and lines as columns: line index, line templates, field extraction, numbers and times.

Nothing here knows a framework; patterns and literals are arguments.
"""
