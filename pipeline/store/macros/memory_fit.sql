-- Bytes of a printed size such as "1.38 GiB", "268.44 MiB", "512 bytes" or XLA's "15.65G"; NULL for NULL.
-- Where the driver does not say what a process has (MIG, WSL), PyTorch prints 17179869184.00 GiB, which is 2^64 bytes:
-- unknown, like anything beyond 2^60.
CREATE MACRO printed_size(printed) AS TRY_CAST(regexp_extract(printed, '[0-9.]+') AS DOUBLE)
    * CASE upper(regexp_extract(printed, '[0-9.]+ ?([KMGT]?)', 1)) WHEN 'K' THEN 1024.0 WHEN 'M' THEN 1048576.0
        WHEN 'G' THEN 1073741824.0 WHEN 'T' THEN 1099511627776.0 ELSE 1.0 END;
CREATE MACRO bytes_in(printed) AS CASE WHEN printed_size(printed) < 1152921504606846976
    THEN CAST(printed_size(printed) AS BIGINT) END;
-- The size that is printed behind a pattern, and the one before it.
CREATE MACRO printed_after(printed, words) AS
    nullif(regexp_extract(printed, words || ' ?([0-9.]+ ?(?:[KMGT](?:i?B)?\b|B|bytes))', 1), '');
CREATE MACRO printed_before(printed, words) AS
    nullif(regexp_extract(printed, '[;(] ?([0-9.]+ (?:[KMGT]i?)?(?:B|bytes)) ' || words, 1), '');
-- A size in words: GiB, or MiB where GiB would read as nearly nothing.
CREATE MACRO size_text(size_bytes) AS CASE WHEN abs(size_bytes) >= 107374182 OR size_bytes = 0
    THEN format('{:.2f} GiB', size_bytes / 1073741824.0) ELSE format('{:.1f} MiB', size_bytes / 1048576.0) END;
-- Bytes that the driver maps at once into an expandable segment of the pool that a request belongs to: what must be
-- free beyond the request, because ranges of it are whole pages (kSmallBuffer, kLargeBuffer: CUDACachingAllocator.cpp).
CREATE MACRO page_bytes(request_bytes) AS CASE WHEN request_bytes > 1048576 THEN 20971520 ELSE 2097152 END;
-- What a failed or nearly failing run needs, as a word of MEM_FIT, from the bytes that show it; NULL is unknown.
--   failed            it ran out of GPU memory (else it ran near the limit)
--   by_others         processes of others made it fail
--   missing           what the request lacked: asked for less free on the device
--   inactive          free bytes inside the allocator's segments when it failed (else: reserved less allocated, at peak)
--   page              bytes that must be free beyond the request in an expandable segment
--   is_expandable     segments can grow already
--   est_missing       what the estimated peak (without fragmentation) lacks on the card; negative: room to spare
--   states            weights, gradients and optimizer states per GPU
--   activations       activations per GPU
--   recompute, mbs    of the run
--   allocated, card   peak of allocated bytes and the card's memory
CREATE MACRO memory_verdict_of(
    failed, by_others, missing, inactive, page, is_expandable, est_missing, states, activations, recompute, mbs,
    allocated, card
) AS CASE
    WHEN NOT failed THEN CASE
        WHEN inactive > 0 AND NOT coalesce(is_expandable, false) AND allocated < mem_near_limit() * card
            THEN 'fragmented' ELSE 'fits' END
    WHEN by_others THEN 'others'
    WHEN missing <= 0 THEN 'unknown'  -- enough was free when the line was written: the allocator was not the reason
    WHEN inactive >= missing + page AND coalesce(est_missing, 0) <= 0
        THEN CASE WHEN coalesce(is_expandable, false) THEN 'pools' ELSE 'expandable_segments' END
    WHEN states > usable_for_states() * card THEN 'sharding'
    WHEN activations IS NULL OR coalesce(missing, est_missing) IS NULL THEN 'unknown'
    WHEN coalesce(recompute, 'none') <> 'full'
        AND greatest(missing - coalesce(inactive, 0), est_missing) <= recomputable() * activations THEN 'recompute'
    WHEN mbs > 1 AND greatest(missing - coalesce(inactive, 0), est_missing) <= activations / 2 THEN 'micro_batch'
    ELSE 'sharding'
END;
-- The verdict's reason in one sentence, with its bytes; parameters as above, `others` is the text that blames others,
-- `held` what the GPU had in use at most, `is_estimated` whether states and activations come from the estimator.
CREATE MACRO memory_evidence_of(
    verdict, others, requested, free, inactive, est_mem, states, activations, is_estimated, recompute, mbs,
    allocated, held, card
) AS concat_ws('; ',
    CASE WHEN verdict IN ('fits', 'fragmented')
        THEN format('held {} of {}', size_text(held), size_text(card))
        ELSE coalesce(others, 'asked for ' || size_text(requested) || CASE
            WHEN requested > card THEN ', more than the whole card of ' || size_text(card)
            WHEN requested > free THEN ', ' || size_text(requested - free) || ' more than the GPU had free'
            WHEN requested <= free THEN ' although the GPU had ' || size_text(free)
                || ' free when the line was written: another process, or a limit on this one, may have held it before'
            ELSE '' END)
    END,
    CASE
        WHEN verdict = 'fragmented' THEN size_text(inactive) || ' of it were reserved beyond what was allocated'
        WHEN verdict IN ('expandable_segments', 'pools')
            THEN size_text(inactive) || ' were free inside the allocator''s segments'
        WHEN verdict <> 'others' AND inactive IS NOT NULL AND verdict <> 'fits'
            THEN size_text(inactive) || ' were free inside the allocator''s segments'
    END,
    CASE WHEN verdict = 'pools' THEN 'expandable segments are on: other pools or streams hold them' END,
    CASE WHEN verdict IN ('recompute', 'micro_batch', 'sharding', 'unknown') THEN nullif(concat_ws(', ',
        CASE WHEN is_estimated AND coalesce(states, activations) IS NOT NULL THEN 'estimated' END
            || ' ' || coalesce(size_text(est_mem) || ' in all', ''),
        'weights, gradients and optimizer states ' || size_text(states),
        'activations ' || size_text(activations)
            || CASE WHEN recompute = 'full' THEN ' though all layers are recomputed' ELSE '' END,
        CASE WHEN verdict = 'micro_batch' THEN 'micro-batch ' || mbs END
    ), '') END,
    CASE WHEN verdict = 'unknown' AND coalesce(est_mem, requested) IS NULL
        THEN 'the log gives no bytes, and the run could not be estimated' END
);
