"""Suites without code: prompts × models × rows × scorers, from `evenhand.yaml` or `promptfooconfig.yaml`."""
