-- Published frontier configurations. MFU and HFU stay apart: HFU counts recomputation, so setting one beside the other
-- misleads. `mfu_logged` is what the source prints, `mfu` what its throughput and shape give here. A row that was
-- rejected as a run is still listed here, as published.
CREATE VIEW frontier AS
SELECT
    p.run_id, p.model, p.total_params_b, p.active_params_b, coalesce(r.num_gpus, p.num_gpus) AS num_gpus,
    coalesce(r.accelerator, p.accelerator) AS accelerator, coalesce(r.seq_len, p.seq_len) AS seq_len,
    coalesce(r.dp, p.dp) AS dp, coalesce(r.tp, p.tp) AS tp, coalesce(r.pp, p.pp) AS pp, coalesce(r.cp, p.cp) AS cp,
    coalesce(r.ep, p.ep) AS ep, coalesce(r.gbs_tokens, p.global_batch_tokens) AS global_batch_tokens, p.precision,
    p.tflops_per_gpu,
    r.mfu,
    p.mfu_pct / 100 AS mfu_logged,
    p.hfu_pct / 100 AS hfu,
    p.comparability, p.verification, p.source_title, p.source_url, p.table_or_figure, p.notes
FROM published_runs AS p
LEFT JOIN runs AS r USING (run_id)
WHERE p.dataset = 'frontier_configs'
