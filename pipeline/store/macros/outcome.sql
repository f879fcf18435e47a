-- The class of a run's ending, and whether that is a failure; NULL where that is unknown.
CREATE MACRO outcome_of(status) AS CASE
    WHEN status IN ('completed', 'oom', 'hang', 'timeout', 'running') THEN status
    WHEN status IN ('nccl_error', 'node_fail', 'preempted') THEN 'infra'
    WHEN status IN ('crash', 'host_oom') THEN 'crash'
    WHEN status IN ('failed', 'truncated') THEN 'unexplained'
    ELSE 'undecided'  -- stopped by a person (cancelled), or without evidence (unknown)
END;
CREATE MACRO is_failure_of(status) AS
    CASE WHEN outcome_of(status) NOT IN ('running', 'undecided') THEN outcome_of(status) <> 'completed' END;
-- What a failure's deciding line has in common with others: its digits taken out; of memory that ran out without what was
-- asked for and free, which differ from run to run.
CREATE MACRO failure_wording(evidence, held_by_others) AS CASE
    WHEN held_by_others THEN 'other processes held the GPU''s memory'
    ELSE regexp_replace(regexp_replace(evidence, '(out of memory)\W+Tried to allocate .*', '\1'), '[0-9][0-9.,]*', '#', 'g')
END;
