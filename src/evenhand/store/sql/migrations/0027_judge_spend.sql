-- What the judge models with a spend cap have cost so far, in picodollars, by their names in the configuration.
CREATE TABLE judge_spend (
    model TEXT NOT NULL PRIMARY KEY,
    spent_pico BIGINT NOT NULL
);
