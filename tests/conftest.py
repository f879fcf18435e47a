"""Settings that every test shares."""

from __future__ import annotations

from hypothesis import settings

# No deadline: how long one example takes says more about the machine's other users than about the code.
settings.register_profile("default", deadline=None)
settings.load_profile("default")
