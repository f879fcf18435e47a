-- eps_frag, what the allocator reserves beyond what is allocated, with its spread: per sweep, and (sweep NULL) over all
-- sweeps of an origin and framework. Runs on an almost empty device say nothing, nor do those that failed on the way up.
CREATE VIEW memory_fragmentation AS
WITH measured AS (
    SELECT
        w.origin, w.sweep, w.framework, w.eps_frag, w.fragmentation_bytes,
        e.est_mem_fragmentation_bytes / nullif(e.est_mem_bytes, 0) AS est_eps_frag
    FROM memory_waterfall AS w
    LEFT JOIN estimates AS e USING (run_id)
    WHERE w.eps_frag IS NOT NULL AND w.status <> 'oom' AND w.mem_peak_allocated_bytes >= fragmentation_bytes()
)
SELECT
    origin, sweep, framework, count(*) AS n,
    median(eps_frag) AS eps_frag, quantile_cont(eps_frag, 0.1) AS eps_frag_low,
    quantile_cont(eps_frag, 0.9) AS eps_frag_high, max(eps_frag) AS eps_frag_max,
    median(est_eps_frag) AS est_eps_frag, max(fragmentation_bytes) AS fragmentation_max_bytes
FROM measured
GROUP BY GROUPING SETS ((origin, framework), (origin, sweep, framework))
HAVING sweep IS NOT NULL OR grouping(sweep) = 1;
