"""Running models over benchmarks: plan, generate, score, judge, aggregate, artifacts."""
