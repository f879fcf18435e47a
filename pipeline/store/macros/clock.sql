-- Clocks of files beside a run's log. None prints a time zone: where the times of a file and of the run do not overlap as
-- printed, one of the two clocks is in another zone, and the file's times are moved by the whole number of half hours that
-- brings its first one nearest to the run's start.
CREATE MACRO clock_offset_s(first_at, last_at, run_started_at, run_ended_at) AS CASE
    WHEN first_at <= run_ended_at AND last_at >= run_started_at THEN 0.0
    ELSE 1800.0 * round(epoch(run_started_at - first_at) / 1800.0)
END;
-- Beyond the span of the world's time zones a difference is none of zones: the file is of another time.
CREATE MACRO is_clock_offset(offset_s) AS abs(offset_s) <= 14 * 3600;
-- The time that a line of a hang prints: a date and a time, or month, day and time without a year (glog), which is then
-- that of the run; around New Year the one next to it.
CREATE MACRO glog_time(printed, in_year) AS try_strptime(
    format('{:04d}{} {}', in_year, lpad(split_part(printed, ' ', 1), 4, '0'), split_part(printed, ' ', 2)[1:15]),
    ['%Y%m%d %H:%M:%S.%f', '%Y%m%d %H:%M:%S']
);
CREATE MACRO hang_line_time(printed, run_started_at) AS CASE
    WHEN contains(printed, '-') THEN TRY_CAST(printed AS TIMESTAMP)
    WHEN glog_time(printed, year(run_started_at)) < run_started_at - INTERVAL 183 DAY
        THEN glog_time(printed, year(run_started_at) + 1)
    WHEN glog_time(printed, year(run_started_at)) > run_started_at + INTERVAL 183 DAY
        THEN glog_time(printed, year(run_started_at) - 1)
    ELSE glog_time(printed, year(run_started_at))
END;
