"""A home in production: its settings, how long records are kept, what monitoring asks for, and alerts."""
