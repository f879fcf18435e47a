"""Files, URLs, streams, encodings, processes, sandboxes and safe unpickling.

Nothing here interprets what it reads.
"""
