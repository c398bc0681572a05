"""Statistics of two-level experiments: pure functions on arrays and tables."""
