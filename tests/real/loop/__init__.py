"""From a plan to real trainings and back: picotron, as it is, started on the CPU from the files that a plan writes.

`surroundings/` lies on the trainings' Python path: it takes the place of kernels that need a GPU and of a hub that is
not asked, and takes memory away. `python -m tests.real.loop --picotron CHECKOUT` (`make test-loop`) prints what came
back. It needs the scratch environment of `tests.real` and minutes, so it is no part of `make test`.
"""
