-- People who log in with a browser, the links that let them in, and their sessions. Codes and sessions are stored as
-- hashes. A session belongs to a person, or to the token that it was opened with.
CREATE TABLE people (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revoked_at TEXT
);
CREATE INDEX people_by_project ON people (project_id, id);
CREATE TABLE login_codes (
    code_hash TEXT NOT NULL PRIMARY KEY,
    person_id TEXT,
    token_id TEXT NOT NULL,
    role TEXT NOT NULL,
    project_id TEXT,
    destination TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX login_codes_by_end ON login_codes (expires_at);
CREATE INDEX login_codes_by_person ON login_codes (person_id) WHERE person_id IS NOT NULL;
CREATE TABLE browser_sessions (
    session_hash TEXT NOT NULL PRIMARY KEY,
    person_id TEXT,
    token_id TEXT NOT NULL,
    role TEXT NOT NULL,
    project_id TEXT,
    created_at TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX browser_sessions_by_end ON browser_sessions (expires_at);
CREATE INDEX browser_sessions_by_person ON browser_sessions (person_id) WHERE person_id IS NOT NULL;
