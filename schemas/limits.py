"""What reading one file may cost, each limit once, with its reason: whatever a file holds, the batch goes on.

A file may take a fixed amount of memory and time, and so much more for each byte that it has unpacked. Beyond that it
is rejected, or read up to the limit where that gives whole lines; the error names file, limit and remedy. Logs are read
in blocks, line by line, at a rate that does not depend on what they say, so that their limits are the sizes of blocks;
what is read as a whole (configurations, tables, dumps, recordings) is timed and weighed meanwhile, by
`pipeline.io.meter` in this process and by the operating system in a sandbox.
"""

from __future__ import annotations

from typing import Final

MIB: Final = 1 << 20

UNPACKED_RATIO: Final = 100
"""Times its packed size that a compressed file may unpack to: a log takes 5 to 40, of repeated lines 100. gzip reaches
1,032 and zstd more than 10,000, so that a few megabytes could hold a day of work."""

UNPACKED_FREE_BYTES: Final = 64 * MIB
"""Bytes that any compressed file may unpack to, which is done in seconds."""

ARCHIVE_FILES: Final = 50_000
"""Files of an archive: a sweep of a thousand runs has 20 each. Each takes a kilobyte of memory while it is listed."""

ARCHIVE_PACKED_BYTES: Final = 4 << 30
"""Bytes of a compressed archive, which is unpacked from its begin to its end to see what it holds: a minute, or two."""

ARCHIVE_BYTES: Final = 8 << 30
"""Bytes that are unpacked of one archive, without weights and pictures."""

ARCHIVE_CACHE_BYTES: Final = 16 << 30
"""Bytes that unpacked archives may take in the user's cache folder."""

BLOCK_LINES: Final = 1_000_000
"""Lines that are taken apart at once. A line costs about a hundred bytes however short it is; the blocks of a real log
have a tenth of these."""

WHOLE_BYTES: Final = 64 * MIB
"""Bytes of a file that is read as a whole. Configurations take kilobytes, the steps of a long run in JSON 20 MiB. As
values of Python, JSON and YAML take up to 24 times their size (`[],` has 3 bytes and a list 72), so 1.5 GiB."""

STREAMED_BYTES: Final = 256 * MIB
"""The same where numbers or rows are taken out of a text without making all of it values: profiler timelines, GPU
samples, tables of jobs. 256 MiB of samples are those of 8 GPUs, each
second, for four days."""

DATABASE_BYTES: Final = 1 << 30
"""Bytes of a database that is read from memory, in a process of its own, which holds it twice."""

SPILL_BYTES: Final = 48 * MIB
"""Bytes of a frame of facts that is kept on disk instead of in memory: some 300,000 steps, hundreds of MiB of a log."""

LOG_WINDOW_BYTES: Final = 4 << 30
"""Bytes of a log that are read to find one of its lines by number: some seconds."""

FREE_SECONDS: Final = 10.0
"""Seconds of processor time that any such file may take."""

SECONDS_PER_MIB: Final = 1.0
"""Seconds that each MiB adds. The slowest reader (YAML in Python) takes 2.5 s, and its files some kilobytes, within
FREE_SECONDS; JSON and tables take 0.02 to 0.2 s."""

FREE_MEMORY_BYTES: Final = 256 * MIB
"""Bytes of memory that any such file may take: libraries that are imported when they are first needed take 100 MiB."""

MEMORY_PER_BYTE: Final = 40
"""Bytes of memory that each byte adds: the 24 of JSON (see WHOLE_BYTES), and a frame or two of the same values."""

MOST_MEMORY_BYTES: Final = 3 << 30
"""Bytes of memory that no file may exceed, whatever its size: small machines have 4 GiB for each core."""

TABLE_COLUMNS: Final = 10_000
"""Columns of a table of steps. Each costs a kilobyte and more, and the metrics of every layer make a few thousand."""

TABLE_CELLS_PER_BYTE: Final = 2
"""Cells of a table for each byte of its text. A cell takes at least one byte, unless rows are shorter than the header:
a few thousand names above as many short rows would make billions of empty cells."""

JUDGED_HANGS: Final = 200
"""Timed-out collectives of a run that are compared with one another, which takes the square of their number. A job
that hangs has one to a few dozen."""

PICKLED_KEY_BITS: Final = 64
"""Bits of an integer that is a key. Python's hash of an integer is its remainder by 2**61 - 1: of longer ones any
number can be equal, and n such keys take n * n / 2 comparisons (60,000 took half a minute)."""


def memory_bytes_of(size: int) -> int:
    """Bytes of memory that a file may take of which so many bytes have been read."""
    return min(FREE_MEMORY_BYTES + MEMORY_PER_BYTE * size, MOST_MEMORY_BYTES)


def seconds_of(size: int) -> float:
    """Seconds of processor time that it may take."""
    return FREE_SECONDS + SECONDS_PER_MIB * size / MIB
