-- Dollars per million tokens of a throughput per accelerator, at a price per accelerator-hour.
CREATE MACRO usd_per_m_tokens_of(usd_per_gpu_hour, tokens_per_s_per_gpu) AS
    CASE WHEN tokens_per_s_per_gpu > 0 THEN usd_per_gpu_hour / 3600 / tokens_per_s_per_gpu * 1e6 END;
