-- What a project's traces come to by stretch of 65 seconds: the first eight characters of their keys. `failed_count` are
-- traces with a span that failed, `timed_count` those whose root has a duration; the cost is `cost_usd` whole dollars and
-- `cost_pico` picodollars (exact, and far from 64 bits), for `cost_known` of the model calls.
CREATE TABLE trace_totals (
    project_id TEXT NOT NULL,
    stretch TEXT NOT NULL,
    trace_count BIGINT NOT NULL,
    span_count BIGINT NOT NULL,
    failed_count BIGINT NOT NULL,
    timed_count BIGINT NOT NULL,
    duration_ms REAL NOT NULL,
    tokens BIGINT NOT NULL,
    cost_usd BIGINT NOT NULL,
    cost_pico BIGINT NOT NULL,
    cost_known BIGINT NOT NULL,
    cost_unknown BIGINT NOT NULL,
    PRIMARY KEY (project_id, stretch)
) /* clustered */;
INSERT INTO trace_totals (project_id, stretch, trace_count, span_count, failed_count, timed_count, duration_ms, tokens,
    cost_usd, cost_pico, cost_known, cost_unknown)
    SELECT project_id, SUBSTR(trace_key, 1, 8), COUNT(*), SUM(span_count), COUNT(CASE WHEN error_count > 0 THEN 1 END),
        COUNT(root_duration_ms), COALESCE(SUM(root_duration_ms), 0.0), SUM(tokens),
        COALESCE(SUM(cost_pico / 1000000000000), 0), COALESCE(SUM(cost_pico % 1000000000000), 0),
        SUM(cost_known), SUM(cost_unknown)
    FROM traces GROUP BY project_id, SUBSTR(trace_key, 1, 8);
