-- Keys that the service makes for itself, as hexadecimal text: `judge_fence` marks judged text in prompts.
CREATE TABLE own_keys (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
