-- Filters of traces that are about nearly all of them or nearly none: each reads its own index and nothing else.
CREATE INDEX traces_without_errors ON traces (project_id, trace_key) WHERE error_count = 0;
CREATE INDEX traces_queued ON traces (project_id, trace_key) WHERE queue_key IS NOT NULL;
CREATE INDEX traces_not_queued ON traces (project_id, trace_key) WHERE queue_key IS NULL;
