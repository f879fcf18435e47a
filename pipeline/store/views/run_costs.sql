-- What a run cost: dollars at the price of its accelerator, and the energy of its GPUs from sampled power.
CREATE VIEW run_costs AS
WITH powered AS (
    SELECT
        run_id, count(DISTINCT gpu) AS gpus_sampled, avg(power_mean_w) AS power_mean_w,
        avg(coalesce(power_busy_w, power_mean_w)) AS power_busy_w
    FROM run_gpu_memory
    WHERE power_mean_w IS NOT NULL
    GROUP BY run_id
)
SELECT
    o.run_id, r.accelerator, p.usd_per_gpu_hour,
    p.usd_per_gpu_hour * o.gpu_hours AS run_usd,
    usd_per_m_tokens_of(p.usd_per_gpu_hour, r.tokens_per_s_per_gpu) AS usd_per_m_tokens,
    w.gpus_sampled, w.power_mean_w, w.power_busy_w,
    w.power_mean_w * r.num_gpus * o.duration_s / 3.6e6 AS energy_kwh,
    CASE WHEN w.run_id IS NOT NULL AND r.num_gpus IS NOT NULL THEN
        CASE WHEN w.gpus_sampled >= r.num_gpus THEN 'sampled' ELSE 'scaled' END
    END AS energy_basis,
    CASE WHEN w.power_busy_w > 0 AND r.tokens_per_s_per_gpu > 0 THEN r.tokens_per_s_per_gpu / w.power_busy_w END
        AS tokens_per_joule,
    CASE WHEN w.power_busy_w > 0 AND r.tokens_per_s_per_gpu > 0 THEN w.power_busy_w / r.tokens_per_s_per_gpu / 3.6 END
        AS kwh_per_m_tokens
FROM run_outcomes AS o
JOIN runs AS r USING (run_id)
LEFT JOIN prices AS p ON p.accelerator = r.accelerator
LEFT JOIN powered AS w ON w.run_id = o.run_id
WHERE p.accelerator IS NOT NULL OR w.run_id IS NOT NULL
