-- The figures of out-of-memory texts, one row per line that holds any: PyTorch's (c10/cuda/CUDACachingAllocator.cpp),
-- and XLA's (xla/pjrt: "RESOURCE_EXHAUSTED: Out of memory while trying to allocate A bytes", later "allocating A"; on a
-- TPU "Attempting to allocate A. That was not possible. There are D free.", and of a program that was not even compiled
-- "Ran out of memory in memory space hbm. Used A of B hbm. Exceeded hbm capacity by J."). TensorFlow's allocator, which
-- JAX has too (bfc_allocator.cc): "ran out of memory trying to allocate A". Apple's MPS: "MPS allocated: C".
-- Until 2.0: "Tried to allocate A (GPU 0; B total capacity; C already allocated; D free; E reserved in total by
-- PyTorch)", until 1.3 with "H cached)" at the end, which is what is not allocated; since: "GPU 0 has a total capacity of
-- B of which D is free. Including non-PyTorch memory, this process has F memory in use. Of the allocated memory C is
-- allocated by PyTorch, and G is reserved by PyTorch but unallocated". With a memory fraction: "I allowed;".
CREATE VIEW gpu_oom_reports AS
WITH printed AS (
    SELECT
        run_id, source_path, line_no, rank, host, text,
        TRY_CAST(nullif(regexp_extract(text, '\b[GN]PU (\d+)', 1), '') AS BIGINT) AS gpu_index,
        -- Each pattern is a literal: DuckDB compiles one that it has to put together for every row again.
        [printed_after(text, '(?:[Tt]ried to allocate|[Oo]ut of memory (?:(?:while )?trying to allocate|allocating)|Attempting to (?:allocate|reserve)|space hbm. Used)'), printed_after(text, 'total capaci?ty of'),
         printed_after(text, 'of which'), printed_after(text, 'this process has'),
         printed_after(text, 'Of the allocated memory'), printed_after(text, 'by PyTorch, and'),
         printed_after(text, 'Graphs\), and'), printed_after(text, 'There are'),
         printed_after(text, 'space hbm. Used [0-9.]+[KMGT]? of'), printed_after(text, 'Exceeded hbm capacity by'),
         printed_after(text, 'MPS allocated:')] AS after_words,
        [printed_before(text, 'total capacity'), printed_before(text, 'already allocated'),
         printed_before(text, 'free'), printed_before(text, 'reserved in total by PyTorch'),
         printed_before(text, 'cached\b')] AS before_words,
        -- A share of the device is all that the process may take (set_per_process_memory_fraction).
        bytes_in(nullif(regexp_extract(text, '[;.] ([0-9.]+ (?:[KMGT]i?)?(?:B|bytes)) allowed;', 1), '')) AS allowed
    FROM events
    WHERE kind = 'oom' AND regexp_matches(
        text, '[Tt]ried to allocate|[Oo]ut of memory (?:(?:while )?trying|allocating)|Attempting to (?:alloc|reserve)|space hbm. Used'
    )
),
sizes AS (
    SELECT
        run_id, source_path, line_no, rank, host, gpu_index,
        bytes_in(after_words[1]) AS oom_requested_bytes,
        bytes_in(coalesce(after_words[3], before_words[3], after_words[8])) AS oom_device_free_bytes,
        bytes_in(coalesce(after_words[5], before_words[2], after_words[11])) AS allocated_bytes,
        coalesce(
            bytes_in(before_words[4]),
            bytes_in(before_words[2]) + bytes_in(before_words[5]),
            bytes_in(after_words[5]) + bytes_in(coalesce(after_words[6], after_words[7]))
        ) AS reserved_bytes,
        bytes_in(after_words[4]) AS mem_process_bytes,
        bytes_in(coalesce(after_words[2], before_words[1], after_words[9])) AS mem_total_bytes,
        bytes_in(after_words[10]) AS exceeded, allowed
    FROM printed
)
SELECT
    run_id, source_path, line_no, rank, host, gpu_index, oom_requested_bytes, oom_device_free_bytes,
    coalesce(exceeded, oom_requested_bytes - least(
        oom_device_free_bytes, CASE WHEN allowed IS NOT NULL THEN greatest(allowed - reserved_bytes, 0) END
    )) AS oom_missing_bytes,
    allocated_bytes, reserved_bytes, reserved_bytes - allocated_bytes AS oom_inactive_bytes,
    mem_process_bytes, mem_total_bytes - oom_device_free_bytes AS mem_used_bytes, mem_total_bytes
FROM sizes;
