"""Which time limit has to be shorter than which."""

import re
from pathlib import Path

import pytest

from doe.store import timing as t

SHORTER = {
    "a heartbeat is seen more than once before a lease is stale": (
        2 * t.BEAT_SECONDS,
        t.STALE_SECONDS,
    ),
    "an observer that is not blocked sees each heartbeat": (t.BEAT_SECONDS, t.GAP_SECONDS),
    "silence is made of several looks": (2 * t.GAP_SECONDS, t.STALE_SECONDS),
    "a scheduler looks often enough to see silence": (t.WATCH_SECONDS, t.GAP_SECONDS),
    "a keeper beats on time": (t.KEEPER_POLL_SECONDS, t.BEAT_SECONDS / 2),
    "a reply is committed before the next heartbeat": (t.FLUSH_SECONDS, t.BEAT_SECONDS),
    "a lease is put back before it is missed": (t.RESTORE_SECONDS, t.BEAT_SECONDS),
    "a keeper that waits to commit is not stale": (t.COMMIT_RETRY_SECONDS, t.STALE_SECONDS / 2),
    "a keeper ends a late run before its slot does": (t.KEEPER_POLL_SECONDS, t.LATE_SECONDS),
    "a slow disk is tried more than once": (t.COMMIT_RETRY_SECONDS, t.COMMIT_SECONDS),
    "a full disk is waited for longest": (t.COMMIT_SECONDS, t.DISK_FULL_SECONDS),
    "a slot that leaves an import is not taken for stubborn": (
        t.IMPORT_EXIT_SECONDS,
        t.KILL_SECONDS,
    ),
    "a slot ends leftovers before the kernel is left to it": (t.SWEEP_SECONDS, t.KILL_SECONDS),
    "looks for verdicts are as frequent as at the queue": (
        t.VERDICT_POLL_SECONDS,
        t.QUEUE_POLL_SECONDS[0],
    ),
    "looks at the queue: first": t.QUEUE_POLL_SECONDS[:2],
    "looks at the queue: then": t.QUEUE_POLL_SECONDS[1:],
    "who only looks gives up first": (t.QUEUE_LOOK_SECONDS, t.SLURM_CALL_SECONDS),
    "one unanswered call ends no repetition": (t.SLURM_CALL_SECONDS, t.SLURM_REPEAT_SECONDS),
    "a controller is away for longer than a call": (
        t.SLURM_REPEAT_SECONDS,
        t.CONTROLLER_AWAY_SECONDS,
    ),
    "a verdict is visible when a stale lease would be": (
        t.STALE_SECONDS,
        t.VERDICT_VISIBLE_SECONDS,
    ),
    "Ray is asked before a scheduler waits": (t.RAY_POLL_SECONDS, t.WATCH_SECONDS),
    "a dead task is no killed one": (t.RAY_DEATH_SECONDS, t.RAY_CANCEL_SECONDS),
    "Ray answers before tasks are given up": (t.RAY_CONNECT_SECONDS, t.RAY_CANCEL_SECONDS),
    "progress is thinned out before it is polled": (t.REPORT_SECONDS, t.COMMAND_POLL_SECONDS),
    "doe try shows no more than is reported": (t.REPORT_SECONDS, t.TRIAL_REPORT_SECONDS),
    "nothing takes longer than a clock can measure": (t.DISK_FULL_SECONDS, t.LONGEST_SECONDS),
    "a start gives up before a killed process is left": (t.FORK_SECONDS, t.KILL_SECONDS),
    "processes stand by before the next look": (t.IDLE_SECONDS, t.WATCH_SECONDS),
    "a message is no run": (t.NOTIFY_SECONDS, t.DISK_FULL_SECONDS),
}


@pytest.mark.parametrize("why", SHORTER)
def test_time_limits_stand_in_their_order(why):
    shorter, longer = SHORTER[why]
    assert shorter <= longer, why


def test_every_time_limit_stands_in_one_file_and_in_the_order():
    named = {name for name in vars(t) if name.endswith("_SECONDS")}
    order = Path(__file__).read_text(encoding="utf-8")
    assert {name for name in named if f"t.{name}" not in order} == set()
    rooms = Path(t.__file__).parent, Path(t.__file__).parents[1] / "running"
    for path in (path for room in rooms for path in room.rglob("*.py")):
        elsewhere = re.findall(r"(?m)^\w+_SECONDS\b.*=", path.read_text(encoding="utf-8"))
        assert not elsewhere or path.samefile(t.__file__), path
