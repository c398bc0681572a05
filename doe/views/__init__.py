"""Output for people: one table model, many renderings."""
