-- Every cell of every grid, with the reason when it is empty: an empty cell is a result. A grid is one origin, sequence
-- length, batch and card; it spans every model x node and accelerator count of the sweeps in it, sweep by sweep, so that two studies
-- of different models do not fill each other's tables with "not run".
CREATE VIEW grid_cells AS
WITH cell_runs AS (
    SELECT runs.*
    FROM runs
    JOIN run_outcomes AS o USING (run_id)
    WHERE o.has_cell
),
sweep_models AS (
    SELECT origin, sweep, seq_len, gbs_tokens, accelerator, model, min(state_bytes_per_param(framework)) AS bytes_per_param
    FROM cell_runs
    GROUP BY ALL
),
sweep_nodes AS (
    SELECT origin, sweep, seq_len, gbs_tokens, accelerator, num_nodes, num_gpus, mode(gpus_per_node) AS gpus_per_node
    FROM cell_runs
    GROUP BY ALL
),
spanned AS (
    SELECT
        m.origin, m.model, n.num_nodes, n.num_gpus, m.seq_len, m.gbs_tokens, m.accelerator,
        max(n.gpus_per_node) AS gpus_per_node, min(m.bytes_per_param) AS bytes_per_param,
        string_agg(DISTINCT m.sweep, ', ' ORDER BY m.sweep) AS sweeps
    FROM sweep_models AS m
    JOIN sweep_nodes AS n
        ON n.origin = m.origin AND n.seq_len = m.seq_len AND n.gbs_tokens = m.gbs_tokens
        AND n.sweep IS NOT DISTINCT FROM m.sweep
        AND n.accelerator IS NOT DISTINCT FROM m.accelerator
    GROUP BY ALL
),
model_params AS (
    -- the usual size of a model: mislabelled runs must not decide whether it fits
    SELECT origin, model, coalesce(mode(params) FILTER (quarantine_reason IS NULL), mode(params)) AS params
    FROM cell_runs
    GROUP BY ALL
),
by_status AS (
    SELECT origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator, status, count(*) AS n,
        min(quarantine_reason) AS quarantine_reason
    FROM cell_runs
    GROUP BY ALL
),
outcomes AS (
    SELECT
        origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator,
        sum(n)::BIGINT AS tried,
        coalesce(sum(n) FILTER (status = 'completed'), 0)::BIGINT AS completed,
        min(quarantine_reason) FILTER (status = 'completed') AS quarantine_reason,
        list(status) AS statuses,
        CASE WHEN count(*) = 1 THEN any_value(status) END AS only_status,
        string_agg(n || ' ' || status, ', ' ORDER BY n DESC, status) AS counts
    FROM by_status
    GROUP BY ALL
),
cells AS (
    SELECT
        s.*, p.params, a.memory_bytes,
        -- shared by all accelerators, before any activation
        s.bytes_per_param * p.params / s.num_gpus AS states_lower_bound_bytes,
        coalesce(o.tried, 0) AS tried, coalesce(o.completed, 0) AS completed,
        o.quarantine_reason, o.statuses, o.only_status, o.counts
    FROM spanned AS s
    LEFT JOIN model_params AS p ON p.origin = s.origin AND p.model = s.model
    LEFT JOIN accelerators AS a ON a.accelerator = s.accelerator
    LEFT JOIN outcomes AS o
        ON o.origin = s.origin AND o.model = s.model AND o.num_nodes = s.num_nodes AND o.seq_len = s.seq_len
        AND o.gbs_tokens = s.gbs_tokens
        AND o.num_gpus IS NOT DISTINCT FROM s.num_gpus AND o.accelerator IS NOT DISTINCT FROM s.accelerator
),
typed AS (
    SELECT
        c.*, b.run_id, b.layout, b.mfu, b.tokens_per_s_per_gpu, b.mem_peak_allocated_bytes,
        coalesce(b.runs_completed, 0) AS ranked,
        cell_state_of(b.run_id IS NOT NULL, c.statuses, c.states_lower_bound_bytes, c.memory_bytes) AS cell_state
    FROM cells AS c
    LEFT JOIN best_configs AS b
        ON b.origin = c.origin AND b.model = c.model AND b.num_nodes = c.num_nodes AND b.seq_len = c.seq_len
        AND b.gbs_tokens = c.gbs_tokens
        AND b.num_gpus IS NOT DISTINCT FROM c.num_gpus AND b.accelerator IS NOT DISTINCT FROM c.accelerator
)
SELECT
    origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator, params, gpus_per_node, cell_state,
    CASE cell_state
        WHEN 'measured' THEN NULL
        WHEN 'not_run' THEN 'not tried'
        WHEN 'quarantined' THEN format('{} completed, none ranked: {}', completed, coalesce(quarantine_reason, 'no throughput'))
        WHEN 'wont_fit' THEN format(
            '{:.0f} GiB of states per GPU, {:.1f} GiB usable; {}',
            states_lower_bound_bytes / 2 ** 30, memory_bytes / 2 ** 30,
            CASE WHEN tried = 0 THEN 'not tried' ELSE tried || ' tried' END
        )
        ELSE CASE
            WHEN only_status IS NOT NULL THEN format('{} of {} {}', tried, tried, only_status)
            ELSE format('{} tried: {}', tried, counts)
        END
    END AS cell_reason,
    tried AS runs_tried,
    ranked AS runs_completed,
    completed - ranked AS runs_quarantined,
    states_lower_bound_bytes, memory_bytes, run_id, layout, mfu, tokens_per_s_per_gpu, mem_peak_allocated_bytes, sweeps
FROM typed
