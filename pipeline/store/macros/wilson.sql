-- Bounds of the 95 % interval of a rate: `hits` of `tries` (Wilson 1927, JASA 22:209; recommended for small samples by
-- Brown, Cai and DasGupta 2001, Statistical Science 16:101). NULL without tries.
CREATE MACRO wilson_low(hits, tries) AS CASE WHEN tries > 0 THEN greatest(0.0, (
    hits / tries + z_95() ** 2 / (2 * tries)
    - z_95() * sqrt(hits / tries * (1 - hits / tries) / tries + z_95() ** 2 / (4 * tries ** 2))
) / (1 + z_95() ** 2 / tries)) END;
CREATE MACRO wilson_high(hits, tries) AS CASE WHEN tries > 0 THEN least(1.0, (
    hits / tries + z_95() ** 2 / (2 * tries)
    + z_95() * sqrt(hits / tries * (1 - hits / tries) / tries + z_95() ** 2 / (4 * tries ** 2))
) / (1 + z_95() ** 2 / tries)) END;
