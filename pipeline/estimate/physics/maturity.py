"""How fast a generation's kernels are by the year of their software.

Every table of a new generation gets faster for years, in every framework: on H100 MLPerf's rounds of 2023 to 2025 by a
fifth, NeMo's and Megatron-Bridge's releases of 2024 to 2026 by a seventh. What remains to be gained falls by the same
share each year: 1 - gap exp(-age / years), with the age counted from the first release for the generation.
"""

from __future__ import annotations

from math import exp

from sweepscope.pipeline.estimate.physics.profile import Profile


def maturity(profile: Profile, year: float) -> float:
    """Rate of products and attention with the software of a year, over that of the year the constants are of.

    1 where a generation's tables do not agree on it (`software_since` is 0): on A100 BigScience, MosaicGPT and NeMo's
    launcher get nearer with an age, Selene and InternEvo further off by as much.
    """
    if not profile.software_since:
        return 1.0

    def reached(at: float) -> float:
        return 1.0 - profile.software_gap * exp(-max(at - profile.software_since, 0.0) / profile.software_years)

    return reached(year) / reached(profile.software_of)
