"""Trainers that never were: logs as people's own scripts print them, with the truth known.

`facts` draws what a run was, `lines` how its steps are printed, `surroundings` what stands around them, `trainer`
puts a log together, `judge` compares what was read with the truth. `python -m tests.trainers` prints a table over many of them.
Written from how scripts print, not from what the reader knows: a name or a form belongs here if somebody uses it.
"""
