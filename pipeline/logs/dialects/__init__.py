"""One module (or folder) per framework whose logs are read.

To add one: a module with a `Dialect`, a line in `pipeline.logs.registry`, a folder in `tests/golden`.
"""
