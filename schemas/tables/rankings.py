"""Views on the fastest layout of each cell, scaling and the audit of MFU."""

from __future__ import annotations

from sweepscope.schemas import vocab
from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import Column, flag, integer, number, text, time
from sweepscope.schemas.core.table import Table

CELL_KEY = ("origin", "model", "num_nodes", "num_gpus", "seq_len", "gbs_tokens", "accelerator")

_WINNER = (
    "run_id framework framework_version torch_version nccl_version cluster params gpus_per_node "
    "dp tp pp cp ep vpp zero_stage mbs gas recompute precision "
    "sequence_parallel pipeline_schedule layout variant options_id strategy tokens_per_s_per_gpu tokens_per_s "
    "step_time_s mfu mfu_logged hfu model_tflops_per_gpu mem_peak_allocated_bytes mem_peak_reserved_bytes"
)

_NOISE = (
    number("run_noise", "fraction", "relative standard deviation of one run of this layout", minimum=0),
    text("noise_basis", "the nearest evidence of that", vocab.NOISE_BASIS),
    integer("noise_repeats", "count", "repeats of layouts of the same origin on as many nodes, first runs not counted"),
    number("low_tokens_per_s_per_gpu", "tokens/s/GPU", "lower end of the 95 % interval of its throughput", minimum=0),
    number("high_tokens_per_s_per_gpu", "tokens/s/GPU", "upper end of the 95 % interval of its throughput", minimum=0),
)

_LEAD = (
    number("margin", "fraction", "lead of the winner: its tokens/s/GPU over the runner-up's, minus 1", minimum=0),
    number(
        "noise",
        "fraction",
        "lead that chance explains: one standard deviation of the difference of both",
        minimum=0,
    ),
    flag("is_tie", "the margin does not exceed the noise; false without a runner-up"),
)
_RUN_BEFORE = text("run_id_before", "run that it is compared with: the fastest before, or the same layout's before")

RANKED_LAYOUTS = Table(
    name="ranked_layouts",
    description="Every completed layout of each cell in order of tokens/s/GPU; rank 1 is in best_configs. Only runs of "
    "the same framework, torch and NCCL version and cluster are repeats; an unknown version is one of its own.",
    grain="one row per cell, layout, versions and cluster",
    primary_key=(*CELL_KEY, "rank_in_cell"),
    layer="view",
    is_stored=True,
    columns=columns(
        *CELL_KEY,
        integer("rank_in_cell", "count", "1 = fastest layout of the cell", minimum=1),
        _WINNER,
        "dp_replicate repeats repeat_spread",
        number("speed_resolution", "fraction", "last printed digit of tokens/s/GPU over its value", minimum=0),
        number("mean_tokens_per_s_per_gpu", "tokens/s/GPU", "mean over its repeats", minimum=0),
        text("repeat_speeds", "tokens/s/GPU of each repeat, slowest first, separated by a blank"),
        _NOISE,
        number("speed_noise", "fraction", "relative standard deviation of its throughput: run_noise / sqrt(repeats)"),
    ),
)

BEST_CONFIGS = Table(
    name="best_configs",
    description="The fastest layout of each cell by measured tokens/s/GPU (median over repeats), its runner-up and "
    "how sure the lead is.",
    grain="one row per origin, model, num_nodes, num_gpus, seq_len, gbs_tokens and accelerator with a ranked run",
    primary_key=CELL_KEY,
    layer="view",
    columns=columns(
        *CELL_KEY,
        _WINNER,
        "repeats repeat_spread",
        _NOISE,
        text("runner_up_run_id", "best run of the second-best layout"),
        text("runner_up_layout", "second-best layout"),
        number("runner_up_tokens_per_s_per_gpu", "tokens/s/GPU", "its throughput"),
        number("runner_up_mfu", "fraction", "its MFU"),
        _LEAD,
        number(
            "chance_best", "fraction", "chance that it is the fastest of its cell; NULL without a runner-up", minimum=0
        ),
        "runs_tried runs_completed",
        integer(
            "layouts_completed",
            "count",
            "distinct layouts among the completed runs, each version and cluster for itself",
        ),
    ),
)

GRID_CELLS = Table(
    name="grid_cells",
    description="Every cell of each grid, with the typed reason when it is empty.",
    grain="one row per origin, seq_len, gbs_tokens, accelerator, and each model x num_nodes that one sweep spans",
    primary_key=CELL_KEY,
    layer="view",
    columns=columns(
        *CELL_KEY,
        "params gpus_per_node",
        text("cell_state", "what is known about this cell", vocab.CELL_STATE),
        text("cell_reason", "why the cell is empty, in words; NULL when it is measured"),
        "runs_tried runs_completed",
        integer("runs_quarantined", "count", "completed runs that are not ranked: quarantined, or without throughput"),
        number(
            "states_lower_bound_bytes",
            "bytes",
            "weights, gradients and Adam's states over all accelerators, fully sharded, as estimates count them",
        ),
        "memory_bytes run_id layout mfu tokens_per_s_per_gpu mem_peak_allocated_bytes",
        text("sweeps", "sweeps that the runs of the cell come from, in alphabetical order, separated by a comma"),
    ),
)

SCALING_EFFICIENCY = Table(
    name="scaling_efficiency",
    description="Strong scaling (the batch is fixed): speed per accelerator of the best layout at each size against "
    "that at the smallest measured size, per model and per strategy (strategy 'best' = any layout).",
    grain="one row per origin, model, seq_len, gbs_tokens, accelerator, strategy, num_nodes and num_gpus",
    primary_key=("origin", "model", "seq_len", "gbs_tokens", "accelerator", "strategy", "num_nodes", "num_gpus"),
    layer="view",
    columns=columns(
        "origin model seq_len gbs_tokens accelerator strategy num_nodes num_gpus params run_id layout mfu "
        "tokens_per_s tokens_per_s_per_gpu",
        text("baseline_run_id", "run at the baseline: the fastest on the fewest accelerators, fewest nodes first"),
        integer("baseline_num_nodes", "count", "nodes of the baseline"),
        integer("baseline_num_gpus", "count", "accelerators of the baseline"),
        number("baseline_tokens_per_s_per_gpu", "tokens/s/GPU", "throughput per accelerator at the baseline"),
        number("baseline_mfu", "fraction", "MFU at the baseline"),
        number(
            "scaling_efficiency",
            "fraction",
            "tokens_per_s_per_gpu / baseline_tokens_per_s_per_gpu; above 1: each accelerator is faster than at the "
            "baseline, as where the smallest size has too little memory for a fast layout",
            minimum=0,
        ),
        number("ideal_tokens_per_s", "tokens/s", "baseline throughput times the growth in accelerators"),
        "runs_completed runs_tried",
    ),
)

MFU_AUDIT = Table(
    name="mfu_audit",
    description="Runs and cells whose published or logged MFU cannot be taken at face value, and why.",
    grain="one row per run and finding",
    primary_key=("run_id", "finding"),
    layer="view",
    columns=columns(
        "run_id origin framework model num_nodes layout",
        text("finding", "what is wrong, as one word", vocab.FINDING),
        text("detail", "the finding in one sentence, with its figures"),
        "mfu mfu_logged",
        number("mfu_ratio", "1", "mfu_logged / mfu"),
        "source_path line_no",
    ),
)

LEAD_HISTORY = Table(
    name="lead_history",
    description="Which layout led each cell, and from when until when: the ranking's flips.",
    grain="one row per cell and time at which another layout, version or cluster took the lead",
    primary_key=(*CELL_KEY, "flip_no"),
    layer="view",
    columns=columns(
        *CELL_KEY,
        integer("flip_no", "count", "1 = the first to lead", minimum=1),
        time("led_from", "start of the run that took the lead (its end where only that is known)"),
        time("led_until", "start of the run that took it next; NULL: it leads"),
        "run_id framework framework_version torch_version nccl_version cluster layout tokens_per_s_per_gpu",
        _RUN_BEFORE,
        text("layout_before", "layout of that run"),
        _LEAD,
    ),
)


def _before(name: str, what: str) -> Column:
    return text(f"{name}_before", f"{what} before")


VERSION_CHANGES = Table(
    name="version_changes",
    description="Speed of each layout in one version of its software against the version before, on the same cluster.",
    grain="one row per layout, cluster and version that followed another",
    primary_key=("run_id",),
    layer="view",
    columns=columns(
        *CELL_KEY,
        "framework cluster layout run_id",
        time("measured_at", "start of that run"),
        "framework_version torch_version nccl_version tokens_per_s_per_gpu repeats",
        _RUN_BEFORE,
        time("measured_at_before", "start of the run before"),
        _before("framework_version", "version of the framework"),
        _before("torch_version", "version of torch"),
        _before("nccl_version", "version of NCCL"),
        number("before_tokens_per_s_per_gpu", "tokens/s/GPU", "throughput before", minimum=0),
        integer("repeats_before", "count", "completed runs before", minimum=1),
        number("change", "fraction", "its tokens/s/GPU over that before, minus 1"),
        _LEAD[1],
        text("change_verdict", "whether the change exceeds the noise", vocab.CHANGE_VERDICT),
    ),
)

VIEWS = (RANKED_LAYOUTS, BEST_CONFIGS, GRID_CELLS, SCALING_EFFICIENCY, MFU_AUDIT, LEAD_HISTORY, VERSION_CHANGES)
