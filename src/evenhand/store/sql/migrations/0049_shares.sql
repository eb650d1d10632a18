-- Share links: one object that whoever has the link may read, until it ends or is taken back. Secrets are stored as hashes.
CREATE TABLE shares (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    kind TEXT NOT NULL,
    object_ids TEXT NOT NULL,
    title TEXT NOT NULL,
    made_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    revoked_at TEXT
);
CREATE UNIQUE INDEX shares_by_secret ON shares (secret_hash);
CREATE INDEX shares_by_project ON shares (project_id, id);
