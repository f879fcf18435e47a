"""Values as text and colour: numbers with units, symbols, column names, metrics, theme. Names of words and units are
decided here.
"""
