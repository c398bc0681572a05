"""Every time limit of store and running, in seconds; a test asserts their order."""

# Leases -----------------------------------------------------------------------------------------
BEAT_SECONDS = 5.0
"""Interval between heartbeats of a keeper."""
GAP_SECONDS = 10.0
"""An observer that looks less often than this was blocked itself and cannot count silence."""
STALE_SECONDS = 60.0
"""A lease of another machine expires after this time without a heartbeat."""

# Keeper and training ----------------------------------------------------------------------------
KEEPER_POLL_SECONDS = 0.2
"""Interval at which a keeper reads its requests."""
REPORT_SECONDS = 0.1
"""Progress reports that persistently arrive faster than this are thinned out."""
COMMAND_POLL_SECONDS = 1.0
"""Interval at which the CSV of a command is read."""
TRIAL_REPORT_SECONDS = 1.0
"""Interval between progress lines of `doe try`."""
FLUSH_SECONDS = 3.0
"""Time for a training that has replied to flush its streams and exit."""
LATE_SECONDS = 2.0
"""Grace period after the time limit, before a run is killed."""
RESTORE_SECONDS = 1.0
"""Time that a lease is missing before it is put back: the study may be being deleted."""
COMMIT_RETRY_SECONDS = 5.0
"""Interval between attempts to write a verdict."""
COMMIT_SECONDS = 120.0
"""Time that a finished run keeps trying to write its verdict despite errors."""
DISK_FULL_SECONDS = 3600.0
"""Time that it waits for space on a full disk."""
FORK_SECONDS = 5.0
"""Time that a start waits at the process limit before its run is put off."""
KILL_SECONDS = 10.0
"""Time for a killed process to disappear before it is left to the kernel."""

# Scheduler and local engine ---------------------------------------------------------------------
WATCH_SECONDS = 0.5
"""Interval at which runs executed by others are checked."""
IDLE_SECONDS = 0.05
"""Processes on standby for longer than this prepare for writing."""
IMPORT_EXIT_SECONDS = 2.0
"""Time for a warm parent to leave an import."""
SWEEP_SECONDS = 5.0
"""Time for a warm parent to end the remains of a killed keeper."""
NOTIFY_SECONDS = 60.0
"""Time limit of the notification command."""
LONGEST_SECONDS = 1e8
"""Three years: more than any run takes, and less than any clock can measure."""

# Slurm ------------------------------------------------------------------------------------------
VERDICT_POLL_SECONDS = 0.5
"""Interval between checks for verdicts."""
QUEUE_POLL_SECONDS = (0.5, 2.0, 15.0)
"""Interval between checks of the queue: at first, after news, and at most."""
QUEUE_LOOK_SECONDS = 10.0
"""Time that a read-only command waits for the controller."""
SLURM_CALL_SECONDS = 60.0
"""Time after which a Slurm command counts as unanswered."""
SLURM_REPEAT_SECONDS = 60.0
"""Time for which a necessary call is repeated."""
VERDICT_VISIBLE_SECONDS = 60.0
"""Time after a job's good end for its verdict to appear on a network file system."""
CONTROLLER_AWAY_SECONDS = 1800.0
"""Silence of the controller after which the scheduler gives up; its jobs continue."""

# Ray --------------------------------------------------------------------------------------------
RAY_POLL_SECONDS = 0.05
"""Interval at which a task checks its worker."""
RAY_DEATH_SECONDS = 5.0
"""Time for the kernel to end a worker whose task has died."""
RAY_CONNECT_SECONDS = 10.0
"""Time limit for a cluster to answer."""
RAY_CANCEL_SECONDS = 60.0
"""Time for Ray to end tasks that are killed."""
