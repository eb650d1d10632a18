"""Vocabulary, errors, ids, time and JSON. Imports nothing of ours."""
