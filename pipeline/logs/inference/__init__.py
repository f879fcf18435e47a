"""What an unknown log prints, as a dialect file: inference generates, and the engine reads as it reads a user's file.

`fields` finds the values of a line with their labels and units, `series` follows each of them over the lines, `counter`
chooses the one that numbers the steps (`ordinals`: none does), `columns` names the others, `checks` compares them with
each other, `pieces` writes the text by which each is found, `found_steps` makes rules of them, `settings` finds
arguments in any form, and `infer` puts the file together.
Pure functions: no files in here.
"""
