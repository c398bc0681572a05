"""Physics-Informed Tracking: the trainer for the built-in studies."""
