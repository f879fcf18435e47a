"""`python -m sweepscope`, the same as the command `sweepscope`."""

from sweepscope.pipeline.__main__ import main

if __name__ == "__main__":
    raise SystemExit(main())
