"""Files, URLs, streams, encodings, processes and safe unpickling.

Nothing here interprets what it reads.
"""
