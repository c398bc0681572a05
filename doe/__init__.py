"""Designed experiments over training runs, from the plan to the paper's tables."""
