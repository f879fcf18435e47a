"""Settings that every test shares."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline: how long one example takes says more about the machine's other users than about the code. By hand every
# run tries new examples; in continuous integration the same ones, so that a failure is the change's own.
settings.register_profile("default", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("default")
