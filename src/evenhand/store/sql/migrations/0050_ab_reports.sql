-- Results of `evenhand ab analyze` that somebody uploaded to look at: the file as it came, and what a list says about it.
CREATE TABLE ab_reports (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    title TEXT NOT NULL,
    decision TEXT NOT NULL,
    run_count BIGINT NOT NULL,
    content TEXT NOT NULL,
    made_by TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX ab_reports_by_project ON ab_reports (project_id, id);
