-- What computed a score: the scorer's one name in the registry, its version and the options it ran with (JSON text).
-- Null for values that were submitted, and for scores that were stored before.
ALTER TABLE scores ADD COLUMN canonical_name TEXT;
ALTER TABLE scores ADD COLUMN scorer_version TEXT;
ALTER TABLE scores ADD COLUMN scorer_options TEXT;
-- What a request said about the score that a job computes, and which of the three outcomes an ended job came to.
ALTER TABLE jobs ADD COLUMN rationale TEXT;
ALTER TABLE jobs ADD COLUMN metadata TEXT;
ALTER TABLE jobs ADD COLUMN outcome TEXT;
-- The computed scores of an experiment by scorer and version, so that two versions never pass for one. `options` are
-- those of one of the scores; `options_differ` is 1 when another score had others.
CREATE TABLE version_totals (
    experiment_id TEXT NOT NULL,
    scorer_name TEXT NOT NULL,
    canonical_name TEXT NOT NULL,
    version TEXT NOT NULL,
    score_count BIGINT NOT NULL,
    total TEXT NOT NULL,
    minimum REAL,
    maximum REAL,
    label_count BIGINT NOT NULL,
    options TEXT NOT NULL,
    options_differ INTEGER NOT NULL,
    PRIMARY KEY (experiment_id, scorer_name, canonical_name, version)
) /* clustered */;
