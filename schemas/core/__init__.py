"""What a table and a column are, and what follows from them: DDL, pandera checks, the dictionary."""
