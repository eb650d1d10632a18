-- Saved views: a name for the state of a page, which is its query string.
CREATE TABLE views (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    page TEXT NOT NULL,
    name TEXT NOT NULL,
    query TEXT NOT NULL,
    made_by TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE UNIQUE INDEX views_by_name ON views (project_id, page, name);
