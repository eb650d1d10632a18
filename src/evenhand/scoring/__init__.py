"""Scorers: functions from a sample to a measurement."""
