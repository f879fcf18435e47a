-- GPU-hours of the rows that fit: 0 when there are none, NULL (unknown) when there are but none of them knows its own.
CREATE MACRO spent_on(hours, fits) AS
    CASE WHEN count(*) FILTER (fits) = 0 THEN 0.0 ELSE sum(hours) FILTER (fits) END;
