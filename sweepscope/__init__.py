"""sweepscope: the logs of LLM parallelism sweeps as a SQL store and a dashboard.

In a checkout the packages below are links to the folders of the same names, so that they have one import name here and
in an installed wheel, and none that anybody else's `data` or `pipeline` could have.
"""
