"""Physics-Informed Tracking: the trainer that the built-in study runs."""
