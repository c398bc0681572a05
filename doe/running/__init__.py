"""Who executes: backend, worker, scheduler, engines."""
