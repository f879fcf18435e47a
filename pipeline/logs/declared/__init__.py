"""Dialects without code: a TOML file that shows how a trainer prints its lines becomes a `Dialect`.

`document` reads and checks the file, `template` turns a line with named fields into an expression, `printed` knows how
values are printed, `columns` which names there are, `compile` makes the Dialect, and `explain` says what matched.
"""
