-- Review queues with a form, their items, who is working on which item, and what reviewers said.
-- `sort_key` is the order in which open items are handed out; `rank` is the draw behind it where the order is a
-- weighted sample, and `weight` its weight. `target_key` names the target in one text, so that it is unique in a queue.
CREATE TABLE review_queues (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    form TEXT NOT NULL,
    reviewers_per_item BIGINT NOT NULL,
    reserve_seconds BIGINT NOT NULL,
    pick TEXT NOT NULL,
    judge_scorer TEXT,
    item_count BIGINT NOT NULL,
    done_count BIGINT NOT NULL,
    created_at TEXT NOT NULL,
    closed_at TEXT
);
CREATE UNIQUE INDEX review_queues_by_name ON review_queues (project_id, name);
CREATE INDEX review_queues_by_project ON review_queues (project_id, id);
CREATE TABLE review_items (
    id TEXT NOT NULL PRIMARY KEY,
    queue_id TEXT NOT NULL,
    target_type TEXT NOT NULL,
    target_id TEXT NOT NULL,
    other_id TEXT,
    target_key TEXT NOT NULL,
    sort_key TEXT NOT NULL,
    rank REAL,
    weight REAL,
    is_open INTEGER NOT NULL,
    review_count BIGINT NOT NULL,
    flag TEXT,
    created_at TEXT NOT NULL
);
CREATE UNIQUE INDEX review_items_by_target ON review_items (queue_id, target_key);
CREATE INDEX review_items_by_order ON review_items (queue_id, is_open, sort_key);
CREATE INDEX review_items_by_queue ON review_items (queue_id, id);
-- `skipped` is 1 for an item that the reviewer put off; its reservation has ended.
CREATE TABLE review_reservations (
    item_id TEXT NOT NULL,
    reviewer_id TEXT NOT NULL,
    queue_id TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    skipped INTEGER NOT NULL,
    PRIMARY KEY (item_id, reviewer_id)
);
CREATE INDEX review_reservations_by_reviewer ON review_reservations (queue_id, reviewer_id);
CREATE TABLE reviews (
    id TEXT NOT NULL PRIMARY KEY,
    queue_id TEXT NOT NULL,
    item_id TEXT NOT NULL,
    reviewer_id TEXT NOT NULL,
    annotator TEXT NOT NULL,
    answers TEXT NOT NULL,
    adjudication INTEGER NOT NULL,
    annotation_id TEXT,
    created_at TEXT NOT NULL
);
CREATE UNIQUE INDEX reviews_by_item ON reviews (item_id, adjudication, reviewer_id);
CREATE INDEX reviews_by_queue ON reviews (queue_id, id);
