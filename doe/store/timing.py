"""Every time limit of store and running, in seconds; a test asserts their order."""

# Leases -----------------------------------------------------------------------------------------
BEAT_SECONDS = 5.0
"""Between two heartbeats of a keeper."""
GAP_SECONDS = 10.0
"""An observer that looks less often than this was blocked itself and has seen no silence."""
STALE_SECONDS = 60.0
"""A lease of another machine is over after this time without a heartbeat."""

# Keeper and training ----------------------------------------------------------------------------
KEEPER_POLL_SECONDS = 0.2
"""Between two looks of a keeper at what was requested of it."""
REPORT_SECONDS = 0.1
"""Reports of progress that come faster than this for long are thinned out."""
COMMAND_POLL_SECONDS = 1.0
"""Between two looks at the CSV that a command writes."""
TRIAL_REPORT_SECONDS = 1.0
"""Between two lines of progress of `doe try`."""
FLUSH_SECONDS = 3.0
"""A training whose reply is there may take so long to flush its streams and to leave."""
LATE_SECONDS = 2.0
"""A run that did not end itself is killed so long after its time limit."""
RESTORE_SECONDS = 1.0
"""How long the lease is missing before it is put back: who deletes a study may be at it."""
COMMIT_RETRY_SECONDS = 5.0
"""Between two tries to write a verdict."""
COMMIT_SECONDS = 120.0
"""How long a finished run tries to write its verdict against an error."""
DISK_FULL_SECONDS = 3600.0
"""How long it waits for room on a full disk."""
FORK_SECONDS = 5.0
"""At the limit of processes, a start waits so long for room before its run is put off."""
KILL_SECONDS = 10.0
"""A killed process may take so long to be gone before it is left to the kernel."""

# Scheduler and local engine ---------------------------------------------------------------------
WATCH_SECONDS = 0.5
"""Between two looks at runs that others execute."""
IDLE_SECONDS = 0.05
"""Processes that stand by for longer than this make themselves ready to write."""
IMPORT_EXIT_SECONDS = 2.0
"""A warm parent may take so long to leave an import."""
SWEEP_SECONDS = 5.0
"""A warm parent may take so long to end what a killed keeper has left."""
NOTIFY_SECONDS = 60.0
"""The command that is told of the end may take so long."""
LONGEST_SECONDS = 1e8
"""Three years: more than any run takes, and less than any clock can measure."""

# Slurm ------------------------------------------------------------------------------------------
VERDICT_POLL_SECONDS = 0.5
"""Between two looks for verdicts."""
QUEUE_POLL_SECONDS = (0.5, 2.0, 15.0)
"""Between two looks at the queue: at first, after news, and the longest without any."""
QUEUE_LOOK_SECONDS = 10.0
"""A command that only looks waits so long for the controller."""
SLURM_CALL_SECONDS = 60.0
"""A command of Slurm that takes longer is taken as unanswered."""
SLURM_REPEAT_SECONDS = 60.0
"""A call without which nothing can go on is repeated for so long."""
VERDICT_VISIBLE_SECONDS = 60.0
"""After a job's good end its verdict may take so long to be seen on a network file system."""
CONTROLLER_AWAY_SECONDS = 1800.0
"""The controller may be silent for so long before the scheduler gives up; its jobs go on."""

# Ray --------------------------------------------------------------------------------------------
RAY_POLL_SECONDS = 0.05
"""Between two looks of a task at its worker."""
RAY_DEATH_SECONDS = 5.0
"""The kernel may take so long to end a worker whose task has died."""
RAY_CONNECT_SECONDS = 10.0
"""A cluster has to answer within this time."""
RAY_CANCEL_SECONDS = 60.0
"""Ray may take so long to end tasks that are killed."""
