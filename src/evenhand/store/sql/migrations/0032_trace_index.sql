-- For filters of traces: which values occur in which stretch of a project's traces. A stretch is the first ten characters
-- of a trace's key, four seconds of arrivals; `mark` stands for a name, a model, an entry of metadata or a power of two of
-- milliseconds. A list reads only the stretches that have what it asks for.
CREATE TABLE trace_marks (
    project_id TEXT NOT NULL,
    mark BIGINT NOT NULL,
    stretch TEXT NOT NULL,
    PRIMARY KEY (project_id, mark, stretch)
) /* clustered */;
-- Traces with keys up to this one came before marks were kept: they are looked at one by one.
CREATE TABLE trace_marks_start (
    last_key TEXT NOT NULL PRIMARY KEY
);
INSERT INTO trace_marks_start (last_key) SELECT COALESCE(MAX(trace_key), '') FROM traces;
