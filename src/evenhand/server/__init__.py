"""The HTTP edge of the scoring service."""
