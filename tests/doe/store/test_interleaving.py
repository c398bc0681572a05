"""Two and three schedulers on one run, interleaved at every system call, killed and delayed."""

import os
import tempfile
import threading
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doe.running.worker import ExitCode, WorkerOptions, begin, finish
from doe.store import files, leases
from doe.store.files import RunDir
from doe.store.leases import STALE_SECONDS, Lease, Watch
from doe.store.verdicts import Result, commit, decode_result, read_verdict

WAIT = 20.0


class Killed(BaseException):
    """The process is gone at this point; nothing is cleaned up."""


class Actor:
    """A worker on a machine of its own, in a thread that moves one step at a time."""

    def __init__(self, name, world):
        self.name, self.world = name, world
        self.turn, self.paused = threading.Semaphore(0), threading.Semaphore(0)
        self.killed = self.over = False
        self.watch = Watch(clock=lambda: world.now, here=name)
        self.thread = threading.Thread(target=self._main, daemon=True)
        self.thread.start()
        assert self.paused.acquire(timeout=WAIT)

    def step(self, _name):
        self.paused.release()
        assert self.turn.acquire(timeout=WAIT)
        if self.killed:
            raise Killed

    def move(self):
        """Let it go on to its next step."""
        if not self.over:
            self.turn.release()
            assert self.paused.acquire(timeout=WAIT)

    def kill(self):
        self.killed = True
        self.move()

    def _main(self):
        self.world.by_thread[threading.get_ident()] = self
        try:
            self.step("begin")
            while not self._attempt():
                self.step("wait")
        except Killed:
            pass
        except BaseException as error:  # shown by the main thread
            self.world.errors.append(error)
        self.over = True
        self.paused.release()

    def _attempt(self):
        """One worker from its start to its end; True if the run has its verdict."""
        run, number = self.world.run, len(self.world.owners) + 1
        owner = Lease(0, f"{self.name}{number:x}", self.name, self.name, 1, "1")
        held = begin(run, WorkerOptions(), owner, self.watch)
        if isinstance(held, int):
            return held != ExitCode.BUSY
        self.world.owners.append(held.lease.attempt)
        for _ in range(3):
            held.beat()
            self.step("running")
            if held.lost():
                return False
        self.world.executions += 1
        result = Result("done", {"y": 1.0}, None, {"by": self.name, "n": number})
        return finish(held, WorkerOptions(), result) == 0


class World:
    """The disk, a clock, and what must never happen."""

    def __init__(self, directory, actors, damaged):
        self.run = RunDir(Path(directory) / "000-r1")
        self.run.path.mkdir()
        self.now = 0.0
        self.by_thread, self.owners, self.errors, self.executions = {}, [], [], 0
        self.committed = None
        if damaged:
            commit(self.run, Result("done", {"y": 0.0}), "x")
            self.run.result.write_bytes(self.run.result.read_bytes()[:-7])
        self.actors = [Actor(chr(ord("a") + i), self) for i in range(actors)]

    def check(self):
        if self.run.result.exists():
            raw = self.run.result.read_bytes()
            good = decode_result(raw)
            if self.committed is None and good:
                self.committed = raw
            assert self.committed in (None, raw), "a committed verdict changed"
        else:
            aside = [path.read_bytes() for path in self.run.path.glob("result.json.*")]
            assert self.committed in (None, *aside), "a committed verdict is lost"
        assert not self.errors, self.errors

    def act(self, kind, which):
        actor = self.actors[which % len(self.actors)]
        if kind == "move":
            actor.move()
        elif kind == "kill" and sum(a.killed for a in self.actors) < len(self.actors) - 1:
            actor.kill()
        elif kind == "time":
            self.now += STALE_SECONDS
        self.check()

    def finish(self):
        for _ in range(400):
            if all(actor.over for actor in self.actors):
                return
            self.now += STALE_SECONDS / 50
            for actor in self.actors:
                actor.move()
                self.check()
        raise AssertionError("nobody finished the run")


def play(actors, damaged, moves):
    plain, places = files.fault_point, "/dev/shm" if os.path.isdir("/dev/shm") else None
    gap, leases.GAP_SECONDS = leases.GAP_SECONDS, STALE_SECONDS  # nobody is blocked here
    with tempfile.TemporaryDirectory(dir=places) as place:
        world = World(place, actors, damaged)

        def step(name):
            if actor := world.by_thread.get(threading.get_ident()):
                actor.step(name)

        files.fault_point = step
        try:
            for kind, which in moves:
                world.act(kind, which)
            world.finish()
        finally:
            files.fault_point, leases.GAP_SECONDS = plain, gap
            for actor in world.actors:
                actor.killed = True
                actor.turn.release()
                actor.thread.join(WAIT)
        verdict = read_verdict(world.run)
        assert verdict is not None
        assert verdict.result.metrics == {"y": 1.0}
        assert verdict.raw == world.committed, "a committed verdict was replaced"
        assert max(Counter(world.owners).values()) == 1, "a lease was won twice"
        return world


MOVES = st.tuples(
    st.sampled_from(["move"] * 12 + ["kill", "time"]), st.integers(min_value=0, max_value=2)
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(2, 3), st.booleans(), st.lists(MOVES, max_size=90))
def test_one_verdict_whatever_the_order_of_events(actors, damaged, moves):
    play(actors, damaged, moves)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(2, 3), st.lists(st.integers(0, 2), max_size=60))
def test_without_death_and_silence_a_run_is_executed_once(actors, moves):
    world = play(actors, False, [("move", which) for which in moves])
    assert world.executions == 1


def test_a_holder_that_was_only_slow_commits_late_and_changes_nothing():
    # a takes the lease and sleeps; b looks twice, a stale time apart, takes over and commits.
    asleep = [("move", 0)] * 12
    taken_over = [("move", 1)] * 4 + [("time", 0)] + [("move", 1)] * 40
    world = play(2, False, [*asleep, *taken_over])
    assert sorted(world.owners) == [1, 2]


def test_a_good_verdict_that_a_sleeper_moves_away_is_put_back():
    # a judges the damaged verdict and sleeps; b takes over, sets it aside and commits; a wakes.
    for asleep in range(8, 16):
        moves = [("move", 0)] * asleep + [("move", 1)] * 4 + [("time", 0)] + [("move", 1)] * 40
        play(2, True, [*moves, *[("move", 0)] * 40])
