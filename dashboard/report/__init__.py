"""The offline report: sections of answers, charts, tables and their queries, written as one HTML file."""
