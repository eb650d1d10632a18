-- Traces and their spans. `trace_key` is made by the server when a trace's first span arrives: it sorts by time,
-- holds `created_at` in its first 48 bits, and keeps the spans of one trace together whatever its own id looks like.
-- `queue_key` is the same for the moment it was put into the review queue; null when it is not there.
-- `facets` and `models` are lines of JSON text for the filters of the list; the root's facts are copied here so that
-- a list never reads a span.
CREATE TABLE traces (
    trace_key TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    root_span_id TEXT,
    root_name TEXT,
    root_duration_ms REAL,
    metadata TEXT NOT NULL,
    facets TEXT NOT NULL,
    models TEXT NOT NULL,
    span_count BIGINT NOT NULL,
    error_count BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    queue_key TEXT,
    annotation_count BIGINT NOT NULL
);
CREATE UNIQUE INDEX traces_by_id ON traces (id, project_id);
CREATE INDEX traces_by_age ON traces (project_id, trace_key);
CREATE INDEX traces_with_errors ON traces (project_id, trace_key) WHERE error_count > 0;
CREATE INDEX traces_in_queue ON traces (project_id, queue_key, annotation_count) WHERE queue_key IS NOT NULL;
CREATE TABLE spans (
    trace_key TEXT NOT NULL,
    project_id TEXT NOT NULL,
    id TEXT NOT NULL,
    parent_span_id TEXT,
    name TEXT NOT NULL,
    start_us BIGINT NOT NULL,
    end_us BIGINT,
    duration_ms REAL,
    input TEXT,
    output TEXT,
    tokens_input BIGINT,
    tokens_output BIGINT,
    model TEXT,
    metadata TEXT NOT NULL,
    error TEXT,
    clock_skew INTEGER NOT NULL,
    received_at TEXT NOT NULL
);
CREATE UNIQUE INDEX spans_by_trace ON spans (trace_key, id);
CREATE INDEX spans_by_id ON spans (id, project_id);
