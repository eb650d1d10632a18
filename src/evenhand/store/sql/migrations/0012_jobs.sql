-- Scores that the service works out on its own. A job is claimed with a lease; whoever holds the lease when the score
-- is stored ends the job in the same transaction, so no crash loses or doubles a score.
-- `open_at` is when an open job may be claimed next; null once it has ended.
CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    target_type TEXT NOT NULL,
    target_id TEXT NOT NULL,
    trace_key TEXT,
    scorer_name TEXT NOT NULL,
    config TEXT NOT NULL,
    rule_id TEXT,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    lease TEXT,
    open_at BIGINT,
    error TEXT,
    message TEXT,
    reply TEXT,
    score_id TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
CREATE INDEX jobs_open ON jobs (open_at, id) WHERE open_at IS NOT NULL;
CREATE INDEX jobs_by_project ON jobs (project_id, id);
CREATE TABLE scoring_rules (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    filter TEXT NOT NULL,
    sample_rate REAL NOT NULL,
    scorer_name TEXT NOT NULL,
    config TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE UNIQUE INDEX scoring_rules_by_name ON scoring_rules (project_id, name);
CREATE INDEX scoring_rules_by_project ON scoring_rules (project_id, id);
