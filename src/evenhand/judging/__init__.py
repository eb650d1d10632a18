"""The judge: prompts that fence the judged text, verdicts read strictly, panels, calibration."""
