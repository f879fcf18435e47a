-- The parallel dimensions that a layout uses, joined by +, or 'none'. Degrees that a source leaves out are not used
-- (cp, ep); without dp, tp or pp it is unknown.
CREATE MACRO strategy_of(dp, tp, pp, cp, ep) AS CASE WHEN dp IS NOT NULL AND tp IS NOT NULL AND pp IS NOT NULL THEN
    coalesce(nullif(concat_ws('+',
        CASE WHEN dp > 1 THEN 'DP' END, CASE WHEN tp > 1 THEN 'TP' END, CASE WHEN pp > 1 THEN 'PP' END,
        CASE WHEN cp > 1 THEN 'CP' END, CASE WHEN ep > 1 THEN 'EP' END
    ), ''), 'none')
END;
