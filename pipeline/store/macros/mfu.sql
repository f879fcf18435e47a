-- The words of the cause whose ratio is nearest to the one found, if it explains it and itself differs from 1 enough to
-- matter; NULL when none does. `causes` is a list of {ratio, words}.
CREATE MACRO nearest_cause(found, causes) AS list_sort(list_transform(
    list_filter(causes, lambda cause: abs(found / cause.ratio - 1) <= mfu_cause() AND abs(cause.ratio - 1) > mfu_cause()),
    lambda cause: {'distance': abs(found / cause.ratio - 1), 'words': cause.words}
))[1].words;
-- "; missing: a, b" from a list of names in which what is there is NULL, or nothing.
CREATE MACRO missing(names) AS coalesce(
    '; missing: ' || nullif(array_to_string(list_filter(names, lambda name: name IS NOT NULL), ', '), ''), ''
);
