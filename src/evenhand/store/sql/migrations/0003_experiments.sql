-- Experiments, runs, scores, and the aggregates that are kept in the score's own transaction.
-- Sums are decimal text: exact, whatever the numbers. `covered_count` is the number of items with at least one run.
CREATE TABLE experiments (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    dataset_id TEXT NOT NULL,
    dataset_version BIGINT NOT NULL,
    status TEXT NOT NULL,
    auto_complete INTEGER NOT NULL,
    metadata TEXT,
    run_count BIGINT NOT NULL,
    covered_count BIGINT NOT NULL,
    created_at TEXT NOT NULL,
    completed_at TEXT
);
CREATE INDEX experiments_by_project ON experiments (project_id, id);
CREATE INDEX experiments_completed ON experiments (project_id, status, completed_at);
CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    experiment_id TEXT NOT NULL,
    dataset_item_id TEXT NOT NULL,
    repeat_number BIGINT NOT NULL,
    output TEXT NOT NULL,
    trace_id TEXT,
    created_at TEXT NOT NULL
);
CREATE UNIQUE INDEX runs_by_item ON runs (experiment_id, dataset_item_id, repeat_number);
CREATE INDEX runs_by_experiment ON runs (experiment_id, id);
-- `trace_key` is set for scores of spans, `experiment_id` for scores of runs; a score has a number or a label.
CREATE TABLE scores (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    target_type TEXT NOT NULL,
    target_id TEXT NOT NULL,
    trace_key TEXT,
    experiment_id TEXT,
    dataset_item_id TEXT,
    scorer_name TEXT NOT NULL,
    number REAL,
    label TEXT,
    rationale TEXT,
    config TEXT,
    metadata TEXT,
    source TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX scores_by_target ON scores (target_id, id);
-- `clustered` tables are kept in the order of their keys where the database can do that: one tree instead of two.
CREATE TABLE scorer_totals (
    experiment_id TEXT NOT NULL,
    scorer_name TEXT NOT NULL,
    score_count BIGINT NOT NULL,
    total TEXT NOT NULL,
    squares TEXT NOT NULL,
    minimum REAL,
    maximum REAL,
    label_count BIGINT NOT NULL,
    run_count BIGINT NOT NULL,
    PRIMARY KEY (experiment_id, scorer_name)
) /* clustered */;
CREATE TABLE label_totals (
    experiment_id TEXT NOT NULL,
    scorer_name TEXT NOT NULL,
    label_hash TEXT NOT NULL,
    label TEXT NOT NULL,
    score_count BIGINT NOT NULL,
    PRIMARY KEY (experiment_id, scorer_name, label_hash)
) /* clustered */;
-- One row per item and scorer; `passes` counts the ones; `label` is the newest label.
CREATE TABLE item_totals (
    experiment_id TEXT NOT NULL,
    scorer_name TEXT NOT NULL,
    dataset_item_id TEXT NOT NULL,
    score_count BIGINT NOT NULL,
    passes BIGINT NOT NULL,
    total TEXT NOT NULL,
    label_count BIGINT NOT NULL,
    label TEXT,
    PRIMARY KEY (experiment_id, scorer_name, dataset_item_id)
) /* clustered */;
-- How many items have so many scores with so many passes, and the sums of their totals and of the squares of these.
CREATE TABLE cluster_totals (
    experiment_id TEXT NOT NULL,
    scorer_name TEXT NOT NULL,
    score_count BIGINT NOT NULL,
    passes BIGINT NOT NULL,
    items BIGINT NOT NULL,
    total TEXT NOT NULL,
    squares TEXT NOT NULL,
    PRIMARY KEY (experiment_id, scorer_name, score_count, passes)
) /* clustered */;
