"""Speed, measured as ratios in one run. `make bench` runs every `bench_*.py` here."""
