"""Lightning's Trainer under a custom script, and what dialects of trainers on top of it share."""
