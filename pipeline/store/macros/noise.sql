-- Relative size of the last digit in which a number is printed: 41200 -> 100/41200, because logs print 41.2K. Zeros at
-- the end of a number look like missing digits, so a lead is never doubted more for it than without any repeat.
CREATE MACRO printed_resolution(figure) AS CASE WHEN figure > 0 THEN
    10.0 ** (
        floor(log10(figure)) + 1
        - length(trim(replace(split_part(figure::DOUBLE::VARCHAR, 'e', 1), '.', ''), '0'))
    ) / figure
END;
-- By how much two layouts may differ without a winner: the larger spread of their repeats, but never less than the
-- printed precision, because equal printed figures are not equal speeds; of single runs nothing is known.
CREATE MACRO lead_noise(spread, other_spread, resolution, other_resolution) AS coalesce(
    greatest(
        spread, other_spread,
        CASE WHEN spread IS NOT NULL OR other_spread IS NOT NULL
            THEN least(greatest(resolution, other_resolution), noise_without_repeats()) END
    ),
    noise_without_repeats()
);
