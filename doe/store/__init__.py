"""What is on disk: every name, atomic writes, verdicts, leases, what can be seen of a run."""
