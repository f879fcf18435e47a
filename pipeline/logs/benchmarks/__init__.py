"""Output of scripts that measure trainings: one launch after the other in one log, and results without steps."""
