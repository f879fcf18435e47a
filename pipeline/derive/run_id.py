"""The identity of a run attempt."""

from __future__ import annotations

import hashlib


def run_id(source_path: str, key: str) -> str:
    """12 hex digits of BLAKE2b over the source and the attempt (or table row) within it.

    Stable over re-ingests of the same path.

    >>> run_id("/logs/a.out", "1") == run_id("/logs/a.out", "1")
    True
    """
    return hashlib.blake2b(f"{source_path}#{key}".encode(), digest_size=6).hexdigest()
