"""The judge: prompts that fence the judged text, judgements read strictly, panels, calibration."""
