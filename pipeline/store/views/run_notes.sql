-- The notes and tags that are about a run: those on it, on its day, and on cells whose named values it has.
CREATE VIEW run_notes AS
SELECT r.run_id, n.note_id, n.note_kind, 'run' AS note_about, n.text, n.author, n.written_at
FROM notes AS n
JOIN runs AS r USING (run_id)
WHERE n.note_kind <> 'view'
UNION ALL
SELECT o.run_id, n.note_id, n.note_kind, 'day', n.text, n.author, n.written_at
FROM notes AS n
JOIN run_outcomes AS o USING (day)
WHERE n.note_kind <> 'view' AND n.run_id IS NULL
UNION ALL
SELECT r.run_id, n.note_id, n.note_kind, 'cell', n.text, n.author, n.written_at
FROM notes AS n
JOIN runs AS r ON r.model = n.model
    AND coalesce(r.origin = n.origin, n.origin IS NULL)
    AND coalesce(r.num_nodes = n.num_nodes, n.num_nodes IS NULL)
    AND coalesce(r.num_gpus = n.num_gpus, n.num_gpus IS NULL)
    AND coalesce(r.accelerator = n.accelerator, n.accelerator IS NULL)
    AND coalesce(r.seq_len = n.seq_len, n.seq_len IS NULL)
    AND coalesce(r.gbs_tokens = n.gbs_tokens, n.gbs_tokens IS NULL)
WHERE n.note_kind <> 'view' AND n.run_id IS NULL AND n.day IS NULL AND r.duplicate_of IS NULL
