"""Constants of a profile fitted to measured rows, and how well they predict others."""
