-- Datasets and their items. Items are immutable; `version` is the dataset's version that brought the item.
CREATE TABLE datasets (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    version INTEGER NOT NULL,
    item_count INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
CREATE UNIQUE INDEX datasets_by_name ON datasets (project_id, name);
CREATE INDEX datasets_by_project ON datasets (project_id, id);
CREATE TABLE dataset_items (
    id TEXT NOT NULL PRIMARY KEY,
    dataset_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    input TEXT NOT NULL,
    expected_output TEXT,
    metadata TEXT,
    created_at TEXT NOT NULL
);
CREATE INDEX dataset_items_by_dataset ON dataset_items (dataset_id, id);
