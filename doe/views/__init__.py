"""What people look at: one table model, many renderings."""
