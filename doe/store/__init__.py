"""The study on disk: names, atomic writes, verdicts, leases, the state of runs."""
