"""Values as text and colour: numbers, units, symbols, column names, theme."""
