-- When a trace began by its own clock: the least start of its spans, in microseconds since 1970. Traces that are imported
-- later are found by the time they tell of.
ALTER TABLE traces ADD COLUMN started_us BIGINT NOT NULL DEFAULT 0;
UPDATE traces SET started_us = COALESCE(
    (SELECT MIN(start_us) FROM spans WHERE spans.trace_key = traces.trace_key), 0);
CREATE INDEX traces_by_start ON traces (project_id, started_us, trace_key);
