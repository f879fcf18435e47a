-- Which run a memory artefact belongs to: the runs of its directory, else of the nearest one above. Of several attempts
-- the one during which its last event happened, else the only one that ran out of memory, if the artefact shows that.
-- Nobody can tell for the others: they belong to none.
CREATE VIEW run_snapshots AS
WITH near AS (
    SELECT
        s.source_path, s.device, s.recorded_until, s.oom_events, r.run_id, r.status, r.started_at, r.ended_at,
        length(r.run_dir) = max(length(r.run_dir)) OVER (PARTITION BY s.source_path, s.device) AS is_nearest
    FROM (SELECT *, unnest(folder_and_above(run_dir)) AS folder FROM memory_snapshots) AS s
    JOIN runs AS r ON r.run_dir = s.folder
    WHERE r.duplicate_of IS NULL AND r.origin <> 'published'
),
matched AS (
    SELECT
        *,
        count(*) OVER per_file AS candidates,
        coalesce(recorded_until BETWEEN started_at AND ended_at, false) AS is_during,
        coalesce(oom_events > 0, false) AND status = 'oom' AS is_failure
    FROM near
    WHERE is_nearest
    WINDOW per_file AS (PARTITION BY source_path, device)
),
judged AS (
    SELECT
        *,
        sum(is_during::INTEGER) OVER per_file AS during,
        sum(is_failure::INTEGER) OVER per_file AS failures
    FROM matched
    WINDOW per_file AS (PARTITION BY source_path, device)
)
SELECT run_id, source_path, device
FROM judged
WHERE candidates = 1 OR (is_during AND during = 1) OR (during <> 1 AND is_failure AND failures = 1);
