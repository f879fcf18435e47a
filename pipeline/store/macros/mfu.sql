-- The words of the cause whose ratio is nearest to the one found, if it is within 1 % (MFU is printed in two to four
-- digits) and itself far enough from 1 to matter; NULL when none is. `causes` is a list of {ratio, words}.
CREATE MACRO nearest_cause(found, causes) AS list_sort(list_transform(
    list_filter(causes, lambda cause: abs(found / cause.ratio - 1) <= 0.01 AND abs(cause.ratio - 1) > 0.01),
    lambda cause: {'distance': abs(found / cause.ratio - 1), 'words': cause.words}
))[1].words;
-- "; missing: a, b" from a list of names in which what is there is NULL, or nothing.
CREATE MACRO missing(names) AS coalesce(
    '; missing: ' || nullif(array_to_string(list_filter(names, lambda name: name IS NOT NULL), ', '), ''), ''
);
