"""Which runs are worth their GPU-hours: candidates of a question, a choice among them within a budget, and what mends a
run that ran out of memory."""
