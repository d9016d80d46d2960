"""Budgets and baselines: whether a run may pass, with a reason for every line."""
