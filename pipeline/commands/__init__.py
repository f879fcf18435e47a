"""One file per verb, each with a `VERB`. The only code that prints or picks an exit code."""
