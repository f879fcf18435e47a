-- What happened to a run, from all its files, on its log's clock: lines of the log, NCCL's warnings, lines and verdicts on
-- hangs, dumps of the flight recorder, memory, and the scheduler. A line without a time of its own has that of the nearest
-- one before it in the same file, which it did not come before; of the first one after it where none before has any.
CREATE VIEW run_timeline AS
WITH counted_runs AS (
    SELECT run_id, source_path, run_dir, started_at, ended_at, first_step, last_step
    FROM runs
    WHERE duplicate_of IS NULL AND origin <> 'published'
),
hang_lines AS (
    SELECT
        f.run_id, h.source_path, h.line_no, h.hang_line_kind, h.rank, any_value(h.text) AS text,
        min(hang_line_time(h.printed_at, r.started_at)) AS ts
    FROM nccl_hang_lines AS h
    JOIN run_files AS f ON f.path = h.source_path AND h.line_no >= f.from_line AND h.line_no <= coalesce(f.to_line, h.line_no)
    JOIN counted_runs AS r USING (run_id)
    GROUP BY ALL
),
hang_times AS (
    SELECT run_id, source_path, line_no, min(ts) AS ts FROM hang_lines GROUP BY ALL
),
log_lines AS (
    SELECT
        e.run_id, 'log' AS entry_source, e.kind AS entry_kind, coalesce(e.ts, h.ts) AS ts, e.rank, node_name(e.host) AS host,
        e.text, e.source_path, e.line_no
    FROM events AS e
    SEMI JOIN counted_runs AS r USING (run_id)
    LEFT JOIN hang_times AS h USING (run_id, source_path, line_no)
    WHERE e.kind NOT IN ('scheduler', 'config_conflict', 'inconsistent', 'job')
    -- an exception that a rule knows by its class is one entry
    QUALIFY e.kind <> 'exception' OR count(*) OVER (PARTITION BY e.run_id, e.source_path, e.line_no) = 1
),
steps_of_log AS (
    SELECT
        r.run_id, 'log' AS entry_source, CASE WHEN s.step = r.first_step THEN 'first_step' ELSE 'last_step' END AS entry_kind,
        s.ts, NULL::BIGINT AS rank, NULL::VARCHAR AS host,
        concat_ws(' · ', format('step {:,}', s.step), format('loss {:.4g}', s.loss), format('{:.3g} s', s.step_time_s)) AS text,
        s.source_path, s.line_no
    FROM counted_runs AS r
    JOIN steps AS s ON s.run_id = r.run_id AND (s.step = r.first_step OR s.step = r.last_step)
),
nccl_lines AS (
    SELECT run_id, 'nccl' AS entry_source, 'hang_' || hang_line_kind AS entry_kind, ts, rank, NULL::VARCHAR AS host, text,
        source_path, line_no
    FROM hang_lines
    ANTI JOIN events USING (run_id, source_path, line_no)
    UNION ALL
    SELECT f.run_id, 'nccl', 'nccl_' || w.severity, NULL::TIMESTAMP, NULL::BIGINT, node_name(w.host),
        w.text || CASE WHEN w.num_lines > 1 THEN format(' ({:,} lines alike)', w.num_lines) ELSE '' END, w.source_path, w.line_no
    FROM nccl_warnings AS w
    JOIN run_files AS f ON f.path = w.source_path AND w.line_no >= f.from_line AND w.line_no <= coalesce(f.to_line, w.line_no)
    WHERE w.severity <> 'benign'
        AND NOT EXISTS (FROM events AS e WHERE e.run_id = f.run_id AND e.source_path = w.source_path AND e.line_no = w.line_no)
),
-- Dumps have times in UTC; all dumps of a run have one clock.
dumps AS (
    SELECT
        f.run_id, d.source_path, d.rank, d.seq, d.op, d.op_state, d.line_no, d.last_enqueued_seq, d.last_completed_seq,
        make_timestamp(d.created_ns // 1000) AS printed_at
    FROM flight_records AS d
    JOIN run_files AS f ON f.path = d.source_path
    WHERE d.created_ns > 0
),
dump_clocks AS (
    SELECT d.run_id, clock_offset_s(min(d.printed_at), max(d.printed_at), r.started_at, r.ended_at) AS offset_s
    FROM dumps AS d
    JOIN counted_runs AS r USING (run_id)
    GROUP BY d.run_id, r.started_at, r.ended_at
),
-- when the first rank entered a collective
waiting AS (
    SELECT d.run_id, d.seq, min(d.printed_at + to_microseconds((c.offset_s * 1e6)::BIGINT)) AS ts
    FROM dumps AS d
    JOIN dump_clocks AS c USING (run_id)
    WHERE is_clock_offset(c.offset_s)
    GROUP BY d.run_id, d.seq
),
recorded AS (
    SELECT
        d.run_id, 'flight_recorder' AS entry_source, 'last_collective' AS entry_kind,
        CASE WHEN is_clock_offset(c.offset_s) THEN d.printed_at + to_microseconds((c.offset_s * 1e6)::BIGINT) END AS ts,
        d.rank, NULL::VARCHAR AS host,
        format('last collective of the dump: {} seq {}, {}', d.op, d.seq, coalesce(d.op_state, 'state unknown')) AS text,
        d.source_path, d.line_no
    FROM dumps AS d
    JOIN dump_clocks AS c USING (run_id)
    QUALIFY row_number() OVER (PARTITION BY d.run_id, d.source_path, d.rank ORDER BY d.printed_at DESC, d.line_no DESC) = 1
),
suspects AS (
    SELECT
        f.run_id, CASE h.evidence_source WHEN 'flight_recorder' THEN 'flight_recorder' ELSE 'nccl' END AS entry_source,
        'suspect' AS entry_kind, w.ts, TRY_CAST(h.suspect AS BIGINT) AS rank, NULL::VARCHAR AS host,
        concat_ws(' ', h.op, format('seq {}', h.seq)) || ' timed out; suspect: rank ' || h.suspect
            || coalesce(' (' || h.suspect_reason || ')', '') AS text,
        h.source_path, h.line_no
    FROM nccl_hangs AS h
    JOIN run_files AS f ON f.path = h.source_path AND h.line_no >= f.from_line AND h.line_no <= coalesce(f.to_line, h.line_no)
    LEFT JOIN waiting AS w ON w.run_id = f.run_id AND w.seq = h.seq AND h.evidence_source = 'flight_recorder'
    WHERE h.is_first AND h.suspect IS NOT NULL
),
snapshots AS (
    SELECT
        s.run_id, m.*,
        clock_offset_s(m.recorded_from, m.recorded_until, r.started_at, r.ended_at) AS offset_s
    FROM run_snapshots AS s
    JOIN memory_snapshots AS m ON m.source_path = s.source_path AND m.device IS NOT DISTINCT FROM s.device
    JOIN counted_runs AS r USING (run_id)
),
memory AS (
    SELECT
        run_id, 'memory' AS entry_source, 'memory_peak' AS entry_kind,
        CASE WHEN is_clock_offset(offset_s) THEN peak_at + to_microseconds((offset_s * 1e6)::BIGINT) END AS ts,
        rank, NULL::VARCHAR AS host,
        format('allocator''s peak: {:.1f} GiB active', peak_requested_active_bytes / 1073741824)
            || coalesce(format(' of {:.1f} GiB reserved', reserved_at_peak_bytes / 1073741824), '') AS text,
        source_path, NULL::BIGINT AS line_no
    FROM snapshots
    WHERE peak_at IS NOT NULL
    UNION ALL
    SELECT
        run_id, 'memory', 'memory_oom',
        CASE WHEN is_clock_offset(offset_s) THEN recorded_until + to_microseconds((offset_s * 1e6)::BIGINT) END,
        rank, NULL,
        format('allocation of {:.2f} GiB failed', oom_requested_bytes / 1073741824)
            || coalesce(format('; the device had {:.2f} GiB left', oom_device_free_bytes / 1073741824), ''),
        source_path, NULL
    FROM snapshots
    WHERE oom_events > 0
),
-- the samples of a run, on its clock
samples AS (
    SELECT g.run_id, s.source_path, s.line_no, node_name(s.host) AS host, s.gpu_index, s.mem_used_bytes, s.mem_total_bytes,
        s.gpu_utilisation, s.ts + to_seconds(g.clock_offset_s) AS ts
    FROM (SELECT DISTINCT run_id, source_path, clock_offset_s FROM run_gpu_memory) AS g
    JOIN gpu_samples AS s USING (source_path)
    WHERE s.ts IS NOT NULL
),
sampled AS (
    SELECT
        run_id, 'memory' AS entry_source, 'gpu_peak' AS entry_kind, arg_max(ts, mem_used_bytes) AS ts, NULL::BIGINT AS rank,
        arg_max(host, mem_used_bytes) AS host,
        format('most memory in use: {:.1f} GiB', max(mem_used_bytes) / 1073741824)
            || coalesce(format(' of {:.1f}', arg_max(mem_total_bytes, mem_used_bytes) / 1073741824), '')
            || coalesce(format(', GPU {}', arg_max(gpu_index, mem_used_bytes)), '') AS text,
        source_path, arg_max(line_no, mem_used_bytes) AS line_no
    FROM samples
    WHERE mem_used_bytes IS NOT NULL
    GROUP BY run_id, source_path
    UNION ALL
    SELECT
        run_id, 'memory', 'gpus_idle', max(ts) FILTER (gpu_utilisation > idle_utilisation()), NULL, any_value(host),
        format('no GPU computed after this sample, until the last one {:.0f} s later',
            epoch(max(ts)) - epoch(max(ts) FILTER (gpu_utilisation > idle_utilisation()))),
        source_path, arg_max(line_no, ts) FILTER (gpu_utilisation > idle_utilisation())
    FROM samples
    WHERE gpu_utilisation IS NOT NULL
    GROUP BY run_id, source_path
    HAVING epoch(max(ts)) - epoch(max(ts) FILTER (gpu_utilisation > idle_utilisation())) >= idle_samples_s()
),
jobs AS (
    SELECT e.run_id, j.*
    FROM events AS e
    JOIN scheduler_jobs AS j USING (source_path, line_no)
    WHERE e.kind = 'scheduler'
),
scheduled AS (
    SELECT run_id, 'scheduler' AS entry_source, 'job_submitted' AS entry_kind, submitted_at AS ts, NULL::BIGINT AS rank,
        NULL::VARCHAR AS host, format('job {} submitted', job_id) AS text, source_path, line_no
    FROM jobs WHERE submitted_at IS NOT NULL
    UNION ALL
    SELECT run_id, 'scheduler', 'job_started', started_at, NULL, NULL,
        concat_ws(' ', format('job {} started', job_id), format('on {} nodes', num_nodes)), source_path, line_no
    FROM jobs WHERE started_at IS NOT NULL
    UNION ALL
    SELECT run_id, 'scheduler', 'job_' || job_state, ended_at, NULL, NULL,
        format('job {} ended: {}', job_id, replace(job_state, '_', ' '))
            || coalesce(format(', exit code {}', exit_code), '') || coalesce(', ' || job_reason, ''), source_path, line_no
    FROM jobs WHERE ended_at IS NOT NULL AND job_state IS NOT NULL
),
entries AS (
    FROM log_lines
    UNION ALL FROM steps_of_log
    UNION ALL FROM nccl_lines
    UNION ALL FROM recorded
    UNION ALL FROM suspects
    UNION ALL FROM memory
    UNION ALL FROM sampled
    UNION ALL FROM scheduled
),
timed AS (
    SELECT
        *,
        coalesce(ts, CASE WHEN entry_source IN ('log', 'nccl') THEN coalesce(
            last_value(ts IGNORE NULLS) OVER (PARTITION BY run_id, source_path ORDER BY line_no
                RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
            first_value(ts IGNORE NULLS) OVER (PARTITION BY run_id, source_path ORDER BY line_no
                RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
        ) END) AS known_at
    FROM entries
)
SELECT
    run_id,
    row_number() OVER (
        PARTITION BY run_id
            ORDER BY known_at NULLS LAST, source_path, line_no NULLS LAST, entry_source, entry_kind, rank, text
    ) AS entry_no,
    known_at AS ts, ts IS NOT NULL AS is_time_printed, entry_source, entry_kind, rank, host, text, source_path, line_no
FROM timed
