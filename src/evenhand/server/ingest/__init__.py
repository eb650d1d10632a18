"""Spans on their way in: the native format and OTLP."""
