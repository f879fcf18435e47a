"""Profiles from a store's own measured runs: constants of a bundled profile, fitted to them.

Runs of one accelerator generation and one framework are fitted together. Layouts are dealt into folds, so that repeats
of one layout are never on both sides; the profile has the residuals of those folds.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from sweepscope.pipeline.estimate.calibration.recipe_rows import Recipe, Weights
from sweepscope.pipeline.estimate.physics.fabrics import FILE, read_fabrics, with_fabric
from sweepscope.pipeline.estimate.physics.profile import (
    CONSTANTS,
    Profile,
    choose_profile,
    is_current,
    load_profiles,
    read_profile,
)
from sweepscope.pipeline.estimate.rows.asking import ChooseProfile
from sweepscope.pipeline.estimate.rows.stated_facts import with_usual_facts
from sweepscope.pipeline.reference.clusters import find_cluster

FEWEST = 8
"""Runs that a fit needs; with fewer the bundled profile stays."""
FOLDS = 5
TIME = (
    *("gemm_peak_share", "attention_efficiency", "elementwise_passes", "memory_share", "kernel_launch_s"),
    *("link_share", "link_latency_s", "network_share", "network_latency_s", "network_decay"),
    *("tp_hidden", "dp_hidden", "pp_hidden", "shard_contention", "optimizer_passes"),
    *("fixed_step_s", "microbatch_s", "exchange_launch_s", "exchange_launch_growth"),
    *("slow_node_chance", "slow_node_cost"),
)
"""Constants of step time that a fit may move. Many, each held to where it starts: of 12 to 100 rows of a bundled table
whose framework was unknown, this fit predicted left-out rows as well or better than one of the first five constants
(the playbook's 28, 24 and 20 % off in the median for 12, 40 and 100 rows, by five constants 57, 70 and 47 %)."""
STARTS = {
    "microbatch_s": 1e-4,
    "exchange_launch_s": 1e-4,
    "exchange_launch_growth": 0.02,
    "slow_node_chance": 0.003,
    "slow_node_cost": 0.05,
}
"""Where the search starts for what a bundled profile leaves out: little, but something that can grow."""
MEMORY = ("context_bytes", "logit_bytes")
FEWEST_OUTCOMES = 3
"""Runs out of memory, and runs that fitted, from which on outcomes count."""


def usable_runs(runs: pl.DataFrame) -> pl.DataFrame:
    """Completed, ranked runs with a time of steps, and runs out of memory, in the columns of recipes.

    `generation` and `fold` are added. What ran out of memory has no step time: only its outcome counts.
    """
    generations = {name: find_cluster(name) for name in runs["accelerator"].drop_nulls().unique()}
    known = {name: cluster.generation for name, cluster in generations.items() if cluster is not None}
    is_oom = pl.col("status") == "oom"
    # A mean over start-up, evaluations and checkpoints is no time of a step; what lies between lines may hold them.
    is_rough = pl.col("step_time_basis").is_in(["whole_run", "time_stamps"]).fill_null(value=False)
    is_timed = (pl.col("step_time_s") > 0) & ~is_rough
    return runs.filter(
        is_oom | ((pl.col("status") == "completed") & is_timed),
        pl.col("quarantine_reason").is_null(),
        pl.col("duplicate_of").is_null(),
        pl.col("framework").is_not_null(),
    ).with_columns(
        pl.when(~is_oom).then("step_time_s").alias("step_time_s"),
        generation=pl.col("accelerator").replace_strict(known, default=None, return_dtype=pl.String),
        # A peak before it ran out is none of the layout's.
        peak_mem_gb=pl.when(~is_oom).then(pl.col("mem_peak_allocated_bytes") / 1e9),
        fold=(pl.col("layout").fill_null("").rank("dense") % FOLDS).cast(pl.String),
    )


def own_recipes(usable: pl.DataFrame) -> list[Recipe]:
    """One recipe per generation and framework with at least FEWEST runs, starting from the profile in force."""
    is_oom = pl.col("status") == "oom"
    groups = usable.filter(pl.col("generation").is_not_null()).group_by("generation", "framework")
    counts = groups.agg(ran=(~is_oom).sum(), failed=is_oom.sum()).sort("ran", "generation", "framework")
    recipes = []
    for generation, framework, count, failed in counts.iter_rows():
        if count < FEWEST:
            continue
        learns = min(count, failed) >= FEWEST_OUTCOMES
        memory = (*MEMORY, "memory_growth") if learns else MEMORY
        start = with_usual_facts(choose_profile(generation, framework), framework)
        fixed = {name: getattr(start, name) for name in CONSTANTS if name not in (*TIME, *memory)}
        recipes.append(
            Recipe(
                profile=f"{generation}-{framework}",
                dataset="runs of this store",
                rows=(pl.col("generation") == generation) & (pl.col("framework") == framework),
                group="fold",
                time={name: getattr(start, name) or STARTS.get(name, 0.0) for name in TIME},
                memory={name: getattr(start, name) for name in memory},
                fixed=fixed,
                weights=(Weights(pull=0.3),),
                # Most outcomes are met whatever the constants: those that are not must not be drowned by the pull.
                memory_pull=0.03 if learns else 0.3,
                learns_outcomes=learns,
            )
        )
    return recipes


def with_own(folder: Path) -> ChooseProfile:
    """Chooser of profiles: one of a home's `folder` where there is one, else the bundled one; on the fabric that the
    home's nccl-tests measured.

    Profiles that were fitted for other equations are passed over: `doctor` names them.
    """
    calibrated: dict[str, Profile] = {}
    if folder.is_dir():
        base = load_profiles()["default"]
        calibrated = {
            path.stem: read_profile(path, base=base) for path in sorted(folder.glob("*.toml")) if is_current(path)
        }

    fabrics = {one.generation: one for one in read_fabrics(folder / FILE)}

    def choose(generation: str, framework: str | None) -> Profile:
        found = calibrated.get(f"{generation}-{framework}") or choose_profile(generation, framework)
        return with_fabric(found, fabrics.get(generation))

    return choose
