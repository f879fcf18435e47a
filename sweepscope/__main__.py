"""`python -m sweepscope`, the same as the command `sweepscope`."""

import os
import sys

if __name__ == "__main__":
    # `-m` puts the current directory in front, where a training repository's data.py or polars.py would be imported in
    # place of a library's. It stays where it is what sweepscope itself is imported from.
    current, ours = os.getcwd(), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not sys.flags.safe_path and sys.path[0] in ("", current) and current != ours:
        del sys.path[0]

    from sweepscope.pipeline.__main__ import main

    raise SystemExit(main())
