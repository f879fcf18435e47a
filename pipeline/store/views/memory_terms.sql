-- Which term of the estimated memory is off. The residual (allocated less estimated) of completed runs is explained by
-- one term at a time: residual = (term_factor - 1) * term, least squares through the origin, or by a constant;
-- explained_share is the part of the residuals' sum of squares that goes away. Terms that grow together explain alike,
-- so that weights, gradients and optimizer states are one. Where snapshots say what the bytes were for, the measured
-- median is set beside the estimate's, run by run, and needs no fit.
CREATE VIEW memory_terms AS
WITH base AS (
    SELECT *, est_mem_weights_bytes + est_mem_gradients_bytes + est_mem_optimizer_bytes AS est_states,
        mem_weights_bytes + mem_gradients_bytes + mem_optimizer_bytes AS states
    FROM memory_waterfall
    WHERE status = 'completed' AND estimate_gap_bytes IS NOT NULL
        AND NOT (peak_is_lower_bound AND peak_source <> 'snapshot')
),
terms AS (
    SELECT
        origin, sweep, framework, run_id, estimate_gap_bytes::DOUBLE AS residual,
        unnest([
            {'term': 'states', 'estimated': est_states, 'measured': states},
            {'term': 'activations', 'estimated': est_mem_activations_bytes, 'measured': mem_activations_bytes},
            {'term': 'logits', 'estimated': est_mem_logits_bytes, 'measured': NULL},
            {'term': 'buffers', 'estimated': est_mem_buffers_bytes, 'measured': mem_buffers_bytes},
            {'term': 'constant', 'estimated': NULL, 'measured': NULL}
        ], recursive := true)
    FROM base
),
fitted AS (
    SELECT
        origin, sweep, framework, term, count(*) AS n, count(measured) AS n_snapshots,
        median(estimated) AS est_median_bytes,
        median(estimated) FILTER (measured IS NOT NULL) AS est_beside_median_bytes,
        median(measured) AS measured_median_bytes,
        median(residual) AS residual_median_bytes,
        -- a constant is a term of 1 byte
        sum(residual * coalesce(estimated, 1)) AS across, sum(coalesce(estimated, 1.0) ** 2) AS along,
        sum(residual ** 2) AS squares
    FROM terms
    GROUP BY GROUPING SETS ((origin, framework, term), (origin, sweep, framework, term))
    HAVING sweep IS NOT NULL OR grouping(sweep) = 1
)
SELECT
    origin, sweep, framework, term, n, est_median_bytes, residual_median_bytes,
    CASE WHEN n >= memory_fit_runs() AND along > 0 AND term <> 'constant' THEN 1 + across / along END AS term_factor,
    CASE WHEN n >= memory_fit_runs() AND term = 'constant' THEN across / along END AS term_offset_bytes,
    CASE WHEN n >= memory_fit_runs() AND along > 0 AND squares > 0 THEN across ** 2 / along / squares END
        AS explained_share,
    n_snapshots, est_beside_median_bytes, measured_median_bytes
FROM fitted;
