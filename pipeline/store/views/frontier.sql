-- Published frontier configurations. MFU and HFU stay apart: HFU counts recomputation, so setting one beside the other
-- misleads. Where a source prints no MFU, `mfu` is the one recomputed from its throughput, and `comparability` says
-- that it is derived.
CREATE VIEW frontier AS
SELECT
    p.run_id, p.model, p.total_params_b, p.active_params_b, r.num_gpus, r.accelerator, r.seq_len, r.dp, r.tp, r.pp,
    r.cp, r.ep, r.gbs_tokens AS global_batch_tokens, p.precision,
    p.tflops_per_gpu,
    coalesce(p.mfu_pct / 100, r.mfu) AS mfu,
    p.hfu_pct / 100 AS hfu,
    p.comparability, p.verification, p.source_title, p.source_url, p.table_or_figure, p.notes
FROM published_runs AS p
JOIN runs AS r USING (run_id)
WHERE p.dataset = 'frontier_configs'
