"""Laws whose every example takes seconds: the suite tries the stated ones, and a longer search is a variable away.

`SWEEPSCOPE_THOROUGH=1 make test` draws random examples as well.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

THOROUGH = bool(os.environ.get("SWEEPSCOPE_THOROUGH"))


def stated_examples(*, more: int = 50) -> settings:
    """Settings for a test with `@example`s: only those, or `more` random ones too if asked for."""
    return settings(
        max_examples=more,
        phases=tuple(Phase) if THOROUGH else (Phase.explicit,),
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
