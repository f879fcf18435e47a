-- Relative size of the last digit in which a number is printed: 41200 -> 100/41200, because logs print 41.2K. Zeros at
-- the end of a number look like missing digits, so a lead is never doubted more for it than without any repeat.
CREATE MACRO printed_resolution(figure) AS CASE WHEN figure > 0 THEN
    10.0 ** (
        floor(log10(figure)) + 1
        - length(trim(replace(split_part(figure::DOUBLE::VARCHAR, 'e', 1), '.', ''), '0'))
    ) / figure
END;
-- The same of a run's tokens/s/GPU, which may be computed from total tokens/s or from a step time printed in fewer
-- digits: whatever it equals to within rounding may be what it was computed from.
CREATE MACRO speed_resolution(per_gpu, total, gpus, step_time_s, batch_tokens) AS greatest(
    printed_resolution(per_gpu),
    CASE WHEN abs(total / gpus / per_gpu - 1) < 1e-9 THEN printed_resolution(total) END,
    CASE WHEN abs(batch_tokens / step_time_s / gpus / per_gpu - 1) < 1e-9 THEN printed_resolution(step_time_s) END
);
-- How much faster one layout is than another, as a share of the other's tokens/s/GPU: what rankings go by.
CREATE MACRO lead_over(speed, other_speed) AS speed / other_speed - 1;
-- By how much, in the same unit, two layouts may differ without a winner: the larger spread of their repeats, but never less than the
-- printed precision, because equal printed figures are not equal speeds; of single runs nothing is known.
CREATE MACRO lead_noise(spread, other_spread, resolution, other_resolution) AS coalesce(
    greatest(
        spread, other_spread,
        CASE WHEN spread IS NOT NULL OR other_spread IS NOT NULL
            THEN least(greatest(resolution, other_resolution) + 1e-9, noise_without_repeats()) END  -- one digit is within
    ),
    noise_without_repeats()
);
-- Whether a lead proves nothing; without a lead there is nothing to doubt.
CREATE MACRO is_tied(lead, noise) AS coalesce(lead <= noise, false);
