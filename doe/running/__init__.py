"""Execution of runs: backend, worker, scheduler, engines."""
