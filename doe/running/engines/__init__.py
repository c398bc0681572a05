"""Engines start workers somewhere; the run directory decides what became of them.

An engine is a module or package that gives

- ``Settings``: a frozen struct; each field is an option of `doe run` and a key of the study file's
  table of the engine's name; its `Meta` says what it is and which values it takes;
- ``problem(key, value)``: what else is wrong with a value, or an empty text;
- ``open(study, directory, settings)``: the `Engine` (see `base`), or DoeError if it lacks a thing;
- ``DETACHES``: whether its runs go on, and begin, where no scheduler watches;
- ``waiting_reasons(study, runs)``, where it keeps a folder of its name: why runs have not begun.

Naming it in `ENGINES` (`doe.study.values`) is all that the command line, the study file and the
checks need.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, get_args, get_type_hints

import msgspec

from doe.errors import DoeError, nearest
from doe.running.worker import WorkerOptions
from doe.store.files import RunDir, StudyDir
from doe.store.leases import last_lease, machine, process_alive
from doe.store.verdicts import failed_attempts
from doe.study.values import ENGINES, Study


class Slot(msgspec.Struct, frozen=True):
    """A place where runs are executed: a GPU's share, some cores, or a whole cluster."""

    name: str
    device: str = "cpu"
    """What the backend is told: "cpu" or "cuda:0"."""
    places: int = 1
    """How many runs it takes at once; a cluster takes many."""
    kind: str = ""
    """Name of its GPU or processor, as in the provenance of a result; empty where unknown."""
    group: str = ""
    """Slots of one group share a GPU; a run that needs it alone waits until the others are idle."""


class Job(msgspec.Struct, frozen=True):
    """One start of one run."""

    run_id: str
    run_dir: Path
    slot: Slot
    options: WorkerOptions
    """What the worker is told; `options.job` is unique to this start."""
    stage: str = ""
    """The stage that is executed, which may ask for other resources; empty for a run."""
    after: tuple[str, ...] = ()
    """Starts of stages (`options.job`) that have to end first, where no scheduler waits for it."""


class Ended(msgspec.Struct, frozen=True):
    """The news that a started process is gone."""

    run_id: str
    job: str
    """`options.job` of the start that ended."""
    code: int | None = None
    """Exit code, where known; see the codes of `doe.running.worker`."""
    message: str = ""
    """How it ended, for a run that left no verdict: "killed by SIGSEGV", "Slurm: NODE_FAIL"."""
    timeout: bool = False
    """Whether it was ended for taking longer than it may."""
    interrupted: bool = False
    """Whether it was stopped for no fault of its own (a stop that was asked for, preemption)."""
    unseen: bool = False
    """Whether nobody saw how it ended; this is excused as often as a crash is."""


class Left(msgspec.Struct, frozen=True):
    """The news that a run has left its slot: it has finished, and its worker commits."""

    job: str


class Engine(Protocol):
    """What the scheduler needs of an engine. No method blocks for longer than it says."""

    @property
    def slots(self) -> Sequence[Slot]:
        """All places, free or not; fixed while the engine lives."""

    def adopt(self) -> Sequence[tuple[str, str, str]]:
        """Runs that an earlier scheduler handed over and that still wait or run there.

        As (run id, job, slot name). Called once, before anything is started; their end is reported
        by `wait`. An engine without a memory returns nothing: leases tell of running orphans.
        """

    def start(self, jobs: Sequence[Job]) -> None:
        """Begin some runs, at most as many as their slots have free places; DoeError if it cannot.

        Several at once, so that a cluster can submit them as one array.
        """

    def wait(self, seconds: float) -> Sequence[Ended | Left]:
        """Return what has ended or left, as soon as something has, or nothing after `seconds`."""

    def withdraw(self) -> None:
        """Take back what waits and has not begun; `wait` reports it as interrupted."""

    def stop(self, grace: float) -> None:
        """End all runs: TERM, after `grace` seconds KILL; return when no process is left."""

    def close(self) -> None:
        """Let go of idle helpers. Runs that are under way are left to run."""


# What a run's directory tells an engine, apart from the verdict ---------------------------------


def has_begun(run: RunDir, job: str) -> bool:
    """Whether the start of this name has taken the run's lease."""
    last = last_lease(run)
    return last is not None and last.is_of(job)


def failure_recorded(run: RunDir, job: str) -> bool:
    """Whether the start of this name has left a record of how it failed."""
    last = last_lease(run)
    return last is not None and last.is_of(job) and run.attempt(last.attempt).exists()


def await_death(run: RunDir, job: str, seconds: float) -> None:
    """Wait until the process of this start is dead that the kernel is about to end on this machine.

    Looked at alive, it would be taken for one that goes on, and its crash would not be counted.
    """
    last = last_lease(run)
    lease = last.lease if last else None
    if lease is None or lease.job != job or lease.machine != machine():
        return
    deadline = time.monotonic() + seconds
    while process_alive(lease.process) and time.monotonic() < deadline:
        time.sleep(0.01)


def needs_gpu_alone(run: RunDir) -> bool:
    """Whether the run has found too little memory on a GPU that it shared."""
    return any(record.failure.kind == "gpu-memory" for record in failed_attempts(run))


SettingsOf = TypeVar("SettingsOf", bound=msgspec.Struct)


def engine_module(name: str) -> Any:
    """The module of an engine."""
    if name not in ENGINES:
        raise DoeError(
            f"engine {name!r} is unknown{nearest(name, ENGINES)}; known: {', '.join(ENGINES)}"
        )
    return importlib.import_module(ENGINES[name])


class EngineOption(NamedTuple):
    """An option of `doe run` that one or several engines understand."""

    type: type
    help: str
    engines: tuple[str, ...]


def engine_options() -> dict[str, EngineOption]:
    """Every option of every engine, by the name of its field."""
    options: dict[str, EngineOption] = {}
    for engine in ENGINES:
        hints = get_type_hints(engine_module(engine).Settings, include_extras=True)
        for field, hint in hints.items():
            plain, meta = get_args(hint)
            if meta.description is None:  # a list: for the study file alone
                continue
            kinds = [kind for kind in get_args(plain) or (plain,) if kind is not type(None)]
            help_text = f"{engine.capitalize()}: {meta.description}"
            if field in options:
                former = options[field]
                options[field] = EngineOption(
                    former.type, f"{former.help} {help_text}", (*former.engines, engine)
                )
            else:
                options[field] = EngineOption(kinds[0], help_text, (engine,))
    return options


def check_detach(name: str) -> None:
    """Refuse to detach from an engine whose runs need a scheduler."""
    if not engine_module(name).DETACHES:
        able = " or ".join(other for other in ENGINES if engine_module(other).DETACHES)
        raise DoeError(
            f"detaching needs an engine that goes on by itself; got {name}, expected {able}"
        )


def waiting_reasons(directory: Path, runs: Collection[str]) -> dict[str, str]:
    """Run -> why it has not begun, as the engine says that it was handed to."""
    words: dict[str, str] = {}
    files = StudyDir(directory)
    for name in ENGINES:
        if files.engine(name).is_dir():  # where something was handed over
            words |= engine_module(name).waiting_reasons(files, runs)
    return words


def open_engine(name: str, study: Study, directory: Path, requested: Mapping[str, Any]) -> Engine:
    """Make the engine of a name with what the study file and, stronger, `requested` ask of it.

    Raises
    ------
    DoeError
        If there is no such engine, if an option is another engine's or has a wrong value, or if the
        engine lacks something.
    """
    module = engine_module(name)
    options = engine_options()
    for key in requested:
        if key not in options:
            raise DoeError(f"{key!r} is an option of no engine{nearest(key, options)}")
        if name not in options[key].engines:
            raise DoeError(
                f"{key} is for the engine {' or '.join(options[key].engines)}; "
                f"this is {name}, leave it out"
            )
    settings = read_settings(module, name, study.engines.get(name, {}), requested)
    engine: Engine = module.open(study, directory, settings)
    return engine


def stage_settings(
    name: str, study: Study, settings: SettingsOf, **single: Any
) -> dict[str, SettingsOf]:
    """Stage -> what its jobs ask for: what runs do, but for what its own table says.

    Parameters
    ----------
    single
        Settings of runs that stages do not share, as they are for a stage that does not name them.
    """
    module = engine_module(name)
    asked = {}
    for stage, work in study.stages.items():
        table = work.engines.get(name, {})
        own = read_settings(module, f"stages.{stage}.{name}", table, {})
        named = {key: getattr(own, key) for key in table}
        asked[stage] = msgspec.structs.replace(settings, **{**single, **named})
    return asked


def read_settings(
    module: Any, name: str, table: Mapping[str, Any], requested: Mapping[str, Any]
) -> msgspec.Struct:
    """Check a table of the study file and what the command line says instead, all at once."""
    fields = {field.name: field.type for field in msgspec.structs.fields(module.Settings)}
    problems = [
        f"{name}.{key}: unknown key{nearest(key, fields)}; known are {', '.join(fields)}"
        for key in table
        if key not in fields
    ]
    values: dict[str, Any] = {}
    for key, kind in fields.items():
        value = requested.get(key, table.get(key))
        if value is None:
            continue
        try:
            values[key] = msgspec.convert(value, kind)
            problem = module.problem(key, values[key])
        except msgspec.ValidationError as error:
            problem = str(error)
        if problem:
            source = key if key in requested else f"{name}.{key}"
            problems.append(f"{source} = {value!r}: {problem}")
    if problems:
        raise DoeError(f"the settings for {name} cannot be used:\n  " + "\n  ".join(problems))
    settings: msgspec.Struct = module.Settings(**values)
    return settings
