"""Real trainers on the CPU: tiny models and made-up tokens, each of whose trainings is exactly one run.

`environment` installs them in a scratch environment, `scripts/` are the trainings, which write down what they were,
`trainings` lists them, `launch` starts them, `judge` compares what was read with the truth. `python -m tests.real`
(`make test-real`) prints a table, of one ingest after the end and of ingests all along. It needs a package index and
minutes, so it is no part of `make test`.
"""
