"""Trainers that log as Hugging Face transformers does: bars, dicts, histories and tables."""
