-- Whether a run counts in its cell's ranking: completed, with a throughput, and not kept out.
CREATE MACRO may_be_ranked(status, quarantine_reason, tokens_per_s_per_gpu) AS
    status = 'completed' AND quarantine_reason IS NULL AND coalesce(tokens_per_s_per_gpu > 0 AND isfinite(tokens_per_s_per_gpu), false);
-- The state of a cell, from how its tries ended: `statuses` are the distinct words, `has_winner` whether one is
-- ranked, `states_bytes` is what the model's states take at least and `card_bytes` what the card offers (NULL: unknown).
CREATE MACRO cell_state_of(has_winner, statuses, states_bytes, card_bytes) AS CASE
    WHEN has_winner THEN 'measured'
    WHEN list_contains(statuses, 'running') THEN 'running'
    WHEN list_contains(statuses, 'completed') THEN 'quarantined'
    WHEN statuses = ['oom'] THEN 'oom'  -- seen, which is worth more than predicted
    WHEN states_bytes > usable_for_states() * card_bytes THEN 'wont_fit'
    WHEN coalesce(len(statuses), 0) = 0 THEN 'not_run'
    WHEN len(statuses) = 1 AND statuses[1] IN ('host_oom', 'hang', 'timeout', 'cancelled') THEN statuses[1]
    WHEN list_has_all(['node_fail', 'nccl_error', 'preempted'], statuses) THEN 'infra'
    ELSE 'failed'
END;
