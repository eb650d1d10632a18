"""The service's database: SQL lives here and nowhere else."""
