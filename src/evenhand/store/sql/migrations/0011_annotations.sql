-- What people say about traces. Annotations outlive the trace they are about.
CREATE TABLE annotations (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    trace_id TEXT NOT NULL,
    span_id TEXT,
    annotator TEXT NOT NULL,
    label TEXT,
    correction TEXT,
    notes TEXT,
    created_at TEXT NOT NULL
);
CREATE INDEX annotations_by_trace ON annotations (trace_id, project_id, id);
