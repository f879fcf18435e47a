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
-- Relative standard deviation of one run's speed by number of nodes, where nothing else is known: at 1, 2, 4 ... 64 nodes,
-- between them by log2, beyond 64 as at 64. From the bundled nanotron sweep, which repeats hardly any layout: the median
-- difference of 296 twins that differ in ZeRO stage 0 or 1 alone is 0.7, 0.9, 1.8, 1.3, 5.5, 10 and 7 % of those within
-- a factor of 1.5, and 22 % of all twins on 64 nodes, where every other pair is further apart.
CREATE MACRO bundled_noise() AS [0.01, 0.01, 0.02, 0.02, 0.05, 0.10, 0.22];
CREATE MACRO noise_of_nodes(nodes) AS list_transform(
    [least(greatest(log2(greatest(coalesce(nodes, 1), 1)), 0.0), 6.0)],
    lambda step: bundled_noise()[floor(step)::INT + 1]
        * (bundled_noise()[ceil(step)::INT + 1] / bundled_noise()[floor(step)::INT + 1]) ** (step - floor(step))
)[1];
-- A variance known beforehand, drawn towards squared deviations `squares` with `freedom` degrees of freedom.
CREATE MACRO updated_variance(known, squares, freedom) AS
    (noise_prior_freedom() * known + coalesce(squares, 0)) / (noise_prior_freedom() + coalesce(freedom, 0));
-- By how much, in the same unit as a lead, two layouts differ by chance: one standard deviation of their difference.
CREATE MACRO lead_noise(noise, other_noise) AS exp(sqrt(noise ** 2 + other_noise ** 2)) - 1;
-- Share of a standard normal distribution below z (Abramowitz and Stegun 26.2.17, within 1e-7).
CREATE MACRO normal_below(z) AS list_transform([1 / (1 + 0.2316419 * abs(z))], lambda t: abs((z > 0)::INT - exp(-z * z / 2)
    / sqrt(2 * pi()) * t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))))[1];
-- Chance that the first of several layouts is the fastest, from their speeds and the relative deviations of those: over
-- what the first may really run at (21 steps within three deviations), that all others are slower. NULL for a NULL speed.
CREATE MACRO chance_of_first(speeds, noises) AS list_sum(list_transform(range(-10, 11), lambda step:
    exp(step * step * -0.045) * coalesce(list_product(list_transform(range(2, len(speeds) + 1), lambda i:
        normal_below((ln(speeds[1] / speeds[i]) + noises[1] * step * 0.3) / noises[i])
    )), 1)
)) / list_sum(list_transform(range(-10, 11), lambda step: exp(step * step * -0.045)));
-- Whether a lead proves nothing; without a lead there is nothing to doubt.
CREATE MACRO is_tied(lead, noise) AS coalesce(lead <= noise, false);
