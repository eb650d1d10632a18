-- Items that were taken out of their dataset stay for the experiments on earlier versions: `removed_in` is the version
-- that no longer has them.
ALTER TABLE dataset_items ADD COLUMN removed_in INTEGER;
CREATE INDEX dataset_items_present ON dataset_items (dataset_id, id) WHERE removed_in IS NULL;
CREATE INDEX dataset_items_added ON dataset_items (dataset_id, version, id);
CREATE INDEX dataset_items_removed ON dataset_items (dataset_id, removed_in, id) WHERE removed_in IS NOT NULL;
CREATE TABLE dataset_versions (
    dataset_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    added_count BIGINT NOT NULL,
    removed_count BIGINT NOT NULL,
    item_count BIGINT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (dataset_id, version)
) /* clustered */;
INSERT INTO dataset_versions (dataset_id, version, added_count, removed_count, item_count, created_at)
    SELECT id, 1, 0, 0, 0, created_at FROM datasets;
INSERT INTO dataset_versions (dataset_id, version, added_count, removed_count, item_count, created_at)
    SELECT dataset_id, version, COUNT(*), 0,
        CAST(SUM(COUNT(*)) OVER (PARTITION BY dataset_id ORDER BY version) AS BIGINT), MIN(created_at)
    FROM dataset_items GROUP BY dataset_id, version;
-- The history of an item: its runs over all experiments.
CREATE INDEX runs_of_item ON runs (dataset_item_id, id);
-- Rules can rest, and be applied to spans that were stored before they were made.
ALTER TABLE scoring_rules ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE scoring_rules ADD COLUMN updated_at TEXT;
CREATE INDEX jobs_by_status ON jobs (project_id, status, id);
CREATE INDEX jobs_of_rule ON jobs (rule_id, trace_key, target_id) WHERE rule_id IS NOT NULL;
-- `position` is the key of the last trace that was looked at; jobs and position are committed together.
CREATE TABLE backfills (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    rule_id TEXT NOT NULL,
    status TEXT NOT NULL,
    position TEXT NOT NULL,
    end_key TEXT NOT NULL,
    trace_count BIGINT NOT NULL,
    job_count BIGINT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
CREATE INDEX backfills_of_rule ON backfills (rule_id, id);
CREATE INDEX backfills_open ON backfills (id) WHERE status = 'running';
-- The scores of a project by scorer and time, and what they come to by hour (the first 13 characters of the instant).
CREATE INDEX scores_by_scorer ON scores (project_id, scorer_name, created_at, id);
CREATE INDEX scores_by_project ON scores (project_id, created_at, id);
CREATE TABLE score_hours (
    project_id TEXT NOT NULL,
    scorer_name TEXT NOT NULL,
    hour TEXT NOT NULL,
    score_count BIGINT NOT NULL,
    total REAL NOT NULL,
    squares REAL NOT NULL,
    minimum REAL,
    maximum REAL,
    label_count BIGINT NOT NULL,
    PRIMARY KEY (project_id, scorer_name, hour)
) /* clustered */;
INSERT INTO score_hours (project_id, scorer_name, hour, score_count, total, squares, minimum, maximum, label_count)
    SELECT project_id, scorer_name, SUBSTR(created_at, 1, 13), COUNT(number), COALESCE(SUM(number), 0.0),
        COALESCE(SUM(CASE WHEN number > 1e-150 THEN number * number END), 0.0), MIN(number), MAX(number), COUNT(label) FROM scores GROUP BY project_id, scorer_name, SUBSTR(created_at, 1, 13);
-- Who deleted what, and when.
CREATE TABLE audit_log (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    object_type TEXT NOT NULL,
    object_id TEXT NOT NULL,
    details TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX audit_log_by_project ON audit_log (project_id, id);
