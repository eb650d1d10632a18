-- The least and greatest number of each item, so that those of a scorer can be found again after a score was deleted.
ALTER TABLE item_totals ADD COLUMN minimum REAL;
ALTER TABLE item_totals ADD COLUMN maximum REAL;
UPDATE item_totals SET minimum = counted.low, maximum = counted.high FROM (SELECT experiment_id, scorer_name,
    dataset_item_id, MIN(number) AS low, MAX(number) AS high FROM scores WHERE experiment_id IS NOT NULL
    GROUP BY experiment_id, scorer_name, dataset_item_id) AS counted
    WHERE item_totals.experiment_id = counted.experiment_id AND item_totals.scorer_name = counted.scorer_name
    AND item_totals.dataset_item_id = counted.dataset_item_id;
-- Traces older than `retain_days` are deleted in the background. A project with `deleted_at` is on its way out.
ALTER TABLE projects ADD COLUMN retain_days INTEGER;
ALTER TABLE projects ADD COLUMN deleted_at TEXT;
-- What is being deleted in small steps: the rows of an experiment or a project.
CREATE TABLE removals (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    object_id TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX annotations_by_project ON annotations (project_id, id);
