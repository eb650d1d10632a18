-- The scores of a trace's spans. Span ids are unique only within a trace: by their ids alone, the scores of all spans
-- called `root` would be read for one of them.
CREATE INDEX scores_by_trace ON scores (trace_key) WHERE trace_key IS NOT NULL;
