"""Which runs to make next, and which published rules hold for a question."""
