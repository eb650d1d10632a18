-- Whom and which conversation a span belongs to, and what it cost in picodollars (null: not known). `cost_source` says
-- where the price came from. `is_total` is 1 for spans that repeat the tokens of the calls below them: they are not
-- added to the trace's sums.
ALTER TABLE spans ADD COLUMN session_id TEXT;
ALTER TABLE spans ADD COLUMN user_id TEXT;
ALTER TABLE spans ADD COLUMN cost_pico BIGINT;
ALTER TABLE spans ADD COLUMN cost_source TEXT;
ALTER TABLE spans ADD COLUMN is_total INTEGER NOT NULL DEFAULT 0;
-- The first session and user that a span of the trace names; the sum of the known costs (null when none is), and how
-- many model calls it covers and how many it does not.
ALTER TABLE traces ADD COLUMN session_id TEXT;
ALTER TABLE traces ADD COLUMN user_id TEXT;
ALTER TABLE traces ADD COLUMN cost_pico BIGINT;
ALTER TABLE traces ADD COLUMN cost_known BIGINT NOT NULL DEFAULT 0;
ALTER TABLE traces ADD COLUMN cost_unknown BIGINT NOT NULL DEFAULT 0;
UPDATE traces SET cost_unknown = (SELECT COUNT(*) FROM spans WHERE spans.trace_key = traces.trace_key
    AND (model IS NOT NULL OR tokens_input IS NOT NULL OR tokens_output IS NOT NULL));
CREATE INDEX traces_by_session ON traces (project_id, session_id, trace_key) WHERE session_id IS NOT NULL;
CREATE INDEX traces_by_user ON traces (project_id, user_id, trace_key) WHERE user_id IS NOT NULL;
-- The sessions of a project in the order in which they were first seen; what they sum up to is in their traces.
CREATE TABLE sessions (
    project_id TEXT NOT NULL,
    id TEXT NOT NULL,
    session_key TEXT NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE INDEX sessions_by_age ON sessions (project_id, session_key);
