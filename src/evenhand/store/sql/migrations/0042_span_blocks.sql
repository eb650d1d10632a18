-- Ids of spans are random, and an index of all of them would change a page for nearly every span that comes. So spans
-- belong to blocks of 131,072 in the order in which they came, and the index is by block first: only the pages of the
-- newest block change. A span that is asked for by its id alone is looked for in every block.
ALTER TABLE spans ADD COLUMN block INTEGER NOT NULL DEFAULT 0;
DROP INDEX spans_by_id;
CREATE INDEX spans_by_block ON spans (block, id, project_id);
-- The blocks that hold spans; `span_count` is how many were ever put into one.
CREATE TABLE span_blocks (
    number INTEGER NOT NULL PRIMARY KEY,
    span_count BIGINT NOT NULL
);
INSERT INTO span_blocks (number, span_count) SELECT 0, COUNT(*) FROM spans HAVING COUNT(*) > 0;
