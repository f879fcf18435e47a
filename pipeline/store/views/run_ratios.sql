-- The ratios that decide between dimensions, run by run: as estimated, beside the measured MFU; and the share of an
-- accelerator's processors that NCCL takes while it runs beside compute: one thread block, so one processor, for each
-- channel (NVIDIA/nccl, `ncclMaxNchannels`; 132 processors on an H100). Channels are those of the run's own log, else
-- of the files beside it; NULL where no file has NCCL output of a run.
CREATE VIEW run_ratios AS
WITH beside AS (
    SELECT r.run_id, n.num_channels, n.source_path = r.source_path AS is_own
    FROM runs AS r
    JOIN files AS own ON own.path = r.source_path
    JOIN files AS f ON f.unit = own.unit
    JOIN nccl_files AS n ON n.source_path = f.path
    UNION
    SELECT r.run_id, n.num_channels, true AS is_own
    FROM runs AS r
    JOIN nccl_files AS n USING (source_path)
),
channels AS (
    SELECT run_id, coalesce(max(num_channels) FILTER (is_own), max(num_channels)) AS num_channels
    FROM beside
    GROUP BY run_id
)
SELECT
    r.run_id, r.origin, r.sweep, r.framework, r.accelerator, r.model, r.num_nodes, r.num_gpus, r.layout,
    r.mfu, e.est_mfu, e.est_step_time_s,
    e.est_comm_tp_s, e.est_comm_cp_s, e.est_comm_ep_s, e.est_comm_dp_s, e.est_comm_pp_s,
    e.est_time_tp_s, e.est_time_cp_s, e.est_time_ep_s, e.est_time_dp_s, e.est_time_pp_s,
    e.est_rho_tp, e.est_compute_per_comm, e.est_flops_per_comm_byte, e.est_bubble_fraction, e.est_dp_per_pass,
    e.est_pp_break_even_gas, e.est_mfu_overlapped,
    c.num_channels, card.processors,
    least(c.num_channels / card.processors, 1) AS nccl_processor_share,
    r.source_path
FROM runs AS r
LEFT JOIN estimates AS e ON e.run_id = r.run_id AND e.est_status = 'ok'
LEFT JOIN channels AS c ON c.run_id = r.run_id
LEFT JOIN accelerator_links AS card ON card.accelerator = r.accelerator
WHERE r.duplicate_of IS NULL AND (e.run_id IS NOT NULL OR c.num_channels IS NOT NULL);
