"""The Ray engine: a task per run, which starts the worker and waits for it.

Ray chooses the machine and the GPU; retries, verdicts and everything else stay here. Runs belong to
the scheduler: when it dies, Ray ends its tasks, and with each task the kernel ends its worker. The
next `doe run` goes on from their checkpoints.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from doe.errors import DoeError
from doe.running.engines import (
    Ended,
    Job,
    Slot,
    await_death,
    has_begun,
    needs_gpu_alone,
)
from doe.running.processes import counted_interrupts, end_with_parent, ending
from doe.running.worker import STOPPED, ExitCode, WorkerOptions, worker_words
from doe.store.files import RunDir
from doe.store.leases import Held, Watch, acquire, new_owner
from doe.store.timing import (
    KILL_SECONDS,
    RAY_CANCEL_SECONDS,
    RAY_CONNECT_SECONDS,
    RAY_DEATH_SECONDS,
    RAY_POLL_SECONDS,
)
from doe.study.values import Study

DETACHES = False
SLOT = "ray"


class Settings(msgspec.Struct, frozen=True):
    """Resources of each run, and the cluster."""

    ray_address: Annotated[
        str,
        Meta(description="a running cluster, such as auto or HOST:PORT [default: a new one]."),
    ] = ""
    gpus_per_run: Annotated[
        float, Meta(description="GPUs of each run; 0.5 puts two on one.", ge=0)
    ] = 0.0
    cpus: Annotated[
        int, Meta(description="cores of each run [default: the study's threads].", ge=1)
    ] = 0
    jobs: Annotated[
        int, Meta(description="maximum number of runs at once; 0 for as many as fit.", ge=0)
    ] = 0


def problem(_key: str, _value: Any) -> str:
    """Return an empty text: the fields allow nothing wrong."""
    return ""


def open(study: Study, _directory: Path, settings: Settings) -> RayEngine:
    """Connect to a cluster, or start one on this machine."""
    from doe.running.engines import stage_settings

    settings = msgspec.structs.replace(settings, cpus=settings.cpus or study.threads)
    return RayEngine(settings, stage_settings(SLOT, study, settings))


def run_worker(run_dir: str, options: WorkerOptions, cwd: str, path: str) -> int:
    """Execute one run on a machine of the cluster; return the worker's exit code.

    The study's directory has to be at the same place on all machines (shared storage).
    """
    if not os.path.isdir(run_dir):
        raise FileNotFoundError(f"{run_dir} is not on {os.uname().nodename}: use shared storage")
    # To cancel a task, Ray interrupts its process at any point, even while it creates the worker.
    with counted_interrupts() as cancelled:
        process = subprocess.Popen(
            worker_words(run_dir, options),
            cwd=cwd if os.path.isdir(cwd) else None,
            env=os.environ | ({"PYTHONPATH": path} if path else {}),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        while process.poll() is None:
            if cancelled:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(options.grace + KILL_SECONDS)
                process.kill()
                return ExitCode.INTERRUPTED
            time.sleep(RAY_POLL_SECONDS)
        return process.returncode


class RayEngine:
    """Runs as tasks of a Ray cluster; see `doe.running.engines.Engine`."""

    def __init__(self, settings: Settings, stages: Mapping[str, Settings] = {}) -> None:
        self._ray = _import_ray()
        self._settings, self._stages = settings, stages
        self._connect()
        device = "cuda:0" if settings.gpus_per_run else "cpu"
        # An autoscaling cluster may grow.
        rooms = [] if settings.jobs else [*map(self._room, (settings, *stages.values()))]
        places = settings.jobs or rooms[0]
        self.slots = (Slot(SLOT, device, places),)
        self._jobs: dict[Any, Job] = {}
        """Tasks by Ray's reference."""
        self._withdrawn: dict[Any, Held] = {}
        """Leases of withdrawn runs: while they are held, none of these can begin."""

    def _connect(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        _check_listening(self._settings.ray_address)
        local = {"include_dashboard": False} if not self._settings.ray_address else {}
        try:
            self._ray.init(
                address=self._settings.ray_address or "local",
                log_to_driver=False,
                logging_level="ERROR",
                configure_logging=False,
                **local,
            )
        except Exception as error:  # of no further class if its own start takes too long
            raise _unreachable(self._settings.ray_address, error) from error

    def _room(self, settings: Settings) -> int:
        """Return how many runs, or executions of a stage, fit on the cluster at once."""
        resources: Mapping[str, float] = self._ray.cluster_resources()
        wanted = {"GPU": settings.gpus_per_run, "CPU": float(settings.cpus)}
        for name, amount in wanted.items():
            if amount > resources.get(name, 0.0):
                self._ray.shutdown()
                raise DoeError(
                    f"each run or stage needs {amount:g} {name}, but the Ray cluster has "
                    f"{resources.get(name, 0.0):g} in all; reduce gpus_per_run or cpus, "
                    "or start the cluster with more"
                )
        return min(int(resources[name] / amount) for name, amount in wanted.items() if amount)

    def adopt(self) -> Sequence[tuple[str, str, str]]:
        """Return nothing: runs end with the scheduler that started them."""
        return ()

    def start(self, jobs: Sequence[Job]) -> None:
        """Submit each run to Ray as a task without retries."""
        path = os.environ.get("PYTHONPATH", "")
        task = self._ray.remote(run_worker)
        for job in jobs:
            settings = self._stages.get(job.stage, self._settings)
            shared = settings.gpus_per_run % 1 > 0 and not needs_gpu_alone(RunDir(job.run_dir))
            device = "cuda:0" if settings.gpus_per_run else "cpu"
            options = msgspec.structs.replace(job.options, alone=not shared, device=device)
            reference = task.options(
                num_cpus=settings.cpus,
                num_gpus=settings.gpus_per_run if shared else math.ceil(settings.gpus_per_run),
                max_retries=0,
                name=f"doe {job.run_id}",
            ).remote(str(job.run_dir.resolve()), options, os.getcwd(), path)
            self._jobs[reference] = job

    def wait(self, seconds: float) -> Sequence[Ended]:
        """Return events as soon as a run has ended."""
        if not self._jobs:
            time.sleep(seconds)
            return []
        done, _ = self._ray.wait(list(self._jobs), num_returns=1, timeout=seconds)
        if done:  # any other event that occurred meanwhile
            done, _ = self._ray.wait(list(self._jobs), num_returns=len(self._jobs), timeout=0)
        return [self._ended(reference) for reference in done]

    def _ended(self, reference: Any) -> Ended:
        job = self._jobs.pop(reference)
        run_id, name = job.run_id, job.options.job
        if held := self._withdrawn.pop(reference, None):
            held.release()
            return Ended(run_id, name, None, "withdrawn from Ray", interrupted=True)
        errors = self._ray.exceptions
        try:
            code: int = self._ray.get(reference)
        except errors.TaskCancelledError:
            return Ended(run_id, name, None, "withdrawn from Ray", interrupted=True)
        except (errors.NodeDiedError, errors.LocalRayletDiedError):
            return Ended(run_id, name, None, "its machine left the cluster", interrupted=True)
        except errors.RayError as error:
            await_death(RunDir(job.run_dir), name, RAY_DEATH_SECONDS)
            return Ended(run_id, name, None, f"Ray: {type(error).__name__}: {error}")
        return Ended(run_id, name, code, ending(code), interrupted=code in STOPPED)

    def withdraw(self) -> None:
        """Withdraw the tasks for which there was no room yet.

        Ray cannot say whether a task has begun. So the lease decides: whoever takes it first, the
        worker or this scheduler, has the run.
        """
        for reference, job in self._jobs.items():
            run, options = RunDir(job.run_dir), job.options
            owner = new_owner(options.job, options.slot, options.supervisor)
            held = None
            with contextlib.suppress(OSError):  # a full disk: the worker cannot take one either
                held = acquire(run, owner, Watch(), options.expired)
            if held is not None:
                self._withdrawn[reference] = held
            if held is not None or not has_begun(run, options.job):
                self._ray.cancel(reference, force=False)

    def stop(self, grace: float) -> None:
        """Cancel all tasks: their workers get TERM, after the grace time KILL."""
        for force, seconds in ((False, grace), (True, RAY_CANCEL_SECONDS)):
            for reference in self._jobs:
                self._ray.cancel(reference, force=force)
            deadline = time.monotonic() + seconds
            while self._jobs and time.monotonic() < deadline:
                self.wait(0.2)
        self._jobs.clear()

    def close(self) -> None:
        """Leave the cluster; a cluster started here ends."""
        self._ray.shutdown()


def _check_listening(address: str) -> None:
    """Fail at once if nothing listens at an address; Ray itself would retry for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host, int(port)), RAY_CONNECT_SECONDS).close()
        except OSError as error:
            raise _unreachable(address, error) from error


def _unreachable(address: str, error: Exception) -> DoeError:
    return DoeError(
        f"cannot reach a Ray cluster at {address or 'this machine'}: {error}\n"
        "Start one with `ray start --head`, or remove ray_address to run on this machine. "
        "If the cluster asks for a token, export RAY_AUTH_MODE=token as Ray's manual says"
    )


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise DoeError(
            "the Ray engine needs the package ray; install it with pip install 'pit-doe[ray]'"
        ) from error
    return ray
