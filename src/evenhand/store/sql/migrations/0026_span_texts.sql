-- Messages of spans that came as log records, before or after their spans, each once however often it is sent. They are
-- kept for a week: what they add up to is in the span. `whole` is 1 for a record that holds all messages at once.
CREATE TABLE span_texts (
    project_id TEXT NOT NULL,
    trace_id TEXT NOT NULL,
    span_id TEXT NOT NULL,
    place TEXT NOT NULL,
    at_ns BIGINT NOT NULL,
    digest TEXT NOT NULL,
    whole INTEGER NOT NULL,
    text TEXT NOT NULL,
    received_at TEXT NOT NULL,
    PRIMARY KEY (project_id, trace_id, span_id, place, at_ns, digest)
);
CREATE INDEX span_texts_by_age ON span_texts (received_at);
-- Which texts of a span came from the log: 1 the input, 2 the output, 3 both.
ALTER TABLE spans ADD COLUMN logged INTEGER NOT NULL DEFAULT 0;
