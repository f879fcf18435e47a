"""One file per verb: NAME, HELP, `add_arguments`, `run`. The only code that prints or picks an exit code."""
