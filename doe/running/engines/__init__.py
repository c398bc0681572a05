"""Engines start workers somewhere; the run directory decides how each run ended.

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
    """A place for runs: a GPU or a share of one, some cores, or a whole cluster."""

    name: str
    device: str = "cpu"
    """Device for the backend: "cpu" or "cuda:0"."""
    places: int = 1
    """Number of runs at once; a cluster takes many."""
    kind: str = ""
    """Name of its GPU or processor, as in the provenance of a result; empty if unknown."""
    group: str = ""
    """Slots of one group share a GPU; a run that needs it alone waits until the others are idle."""


class Job(msgspec.Struct, frozen=True):
    """One start of one run."""

    run_id: str
    run_dir: Path
    slot: Slot
    options: WorkerOptions
    """Options of the worker; `options.job` is unique to this start."""
    stage: str = ""
    """The stage that is executed, which may need other resources; empty for a run."""
    after: tuple[str, ...] = ()
    """Starts of stages (`options.job`) that must end first, if no scheduler waits for them."""


class Ended(msgspec.Struct, frozen=True):
    """Event: a started process has ended."""

    run_id: str
    job: str
    """`options.job` of the start that ended."""
    code: int | None = None
    """Exit code, if known; see the codes of `doe.running.worker`."""
    message: str = ""
    """How it ended, for a run without verdict: "killed by SIGSEGV", "Slurm: NODE_FAIL"."""
    timeout: bool = False
    """Whether it was ended at its time limit."""
    interrupted: bool = False
    """Whether it was stopped through no fault of its own (a requested stop, preemption)."""
    unseen: bool = False
    """Whether nobody saw how it ended; this is excused as often as a crash is."""


class Left(msgspec.Struct, frozen=True):
    """Event: a run has left its slot; training has finished and its worker commits."""

    job: str


class Engine(Protocol):
    """Interface of engines for the scheduler. No method blocks for longer than documented."""

    @property
    def slots(self) -> Sequence[Slot]:
        """All slots, free or not; fixed for the life of the engine."""

    def adopt(self) -> Sequence[tuple[str, str, str]]:
        """Return runs that an earlier scheduler submitted and that still wait or run there.

        As (run id, job, slot name). Called once, before anything is started; their end is reported
        by `wait`. An engine without a memory returns nothing: leases show running orphans.
        """

    def start(self, jobs: Sequence[Job]) -> None:
        """Start some runs, at most as many as their slots have room for; DoeError if impossible.

        Several at once, so that a cluster can submit them as one array.
        """

    def wait(self, seconds: float) -> Sequence[Ended | Left]:
        """Return events as soon as there are any, or nothing after `seconds`."""

    def withdraw(self) -> None:
        """Withdraw what waits and has not begun; `wait` reports it as interrupted."""

    def stop(self, grace: float) -> None:
        """End all runs: TERM, after `grace` seconds KILL; return when no process is left."""

    def close(self) -> None:
        """Release idle helpers. Running runs continue."""


# State of a run's directory for engines, apart from the verdict ----------------------------------


def has_begun(run: RunDir, job: str) -> bool:
    """Return whether the start with this name took the run's lease."""
    last = last_lease(run)
    return last is not None and last.is_of(job)


def failure_recorded(run: RunDir, job: str) -> bool:
    """Return whether the start with this name recorded how it failed."""
    last = last_lease(run)
    return last is not None and last.is_of(job) and run.attempt(last.attempt).exists()


def await_death(run: RunDir, job: str, seconds: float) -> None:
    """Wait for the death of a process that the kernel is about to end on this machine.

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
    """Return whether the run ran out of memory on a GPU that it shared."""
    return any(record.failure.kind == "gpu-memory" for record in failed_attempts(run))


SettingsOf = TypeVar("SettingsOf", bound=msgspec.Struct)


def engine_module(name: str) -> Any:
    """Return the module of an engine."""
    if name not in ENGINES:
        raise DoeError(
            f"engine {name!r} is unknown{nearest(name, ENGINES)}; known: {', '.join(ENGINES)}"
        )
    return importlib.import_module(ENGINES[name])


class EngineOption(NamedTuple):
    """An option of `doe run` for one or several engines."""

    type: type
    help: str
    engines: tuple[str, ...]


def engine_options() -> dict[str, EngineOption]:
    """Return every option of every engine, by the name of its field."""
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
            f"detaching needs an engine that works without a scheduler; got {name}, expected {able}"
        )


def waiting_reasons(directory: Path, runs: Collection[str]) -> dict[str, str]:
    """Return run -> why it has not begun, according to the engines."""
    words: dict[str, str] = {}
    files = StudyDir(directory)
    for name in ENGINES:
        if files.engine(name).is_dir():  # if something was submitted
            words |= engine_module(name).waiting_reasons(files, runs)
    return words


def open_engine(name: str, study: Study, directory: Path, requested: Mapping[str, Any]) -> Engine:
    """Create the named engine; `requested` overrides the study file.

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
            raise DoeError(f"{key!r} is not an option of any engine{nearest(key, options)}")
        if name not in options[key].engines:
            raise DoeError(
                f"{key} applies to the engine {' or '.join(options[key].engines)}, not to {name}; "
                "remove it"
            )
    settings = read_settings(module, name, study.engines.get(name, {}), requested)
    engine: Engine = module.open(study, directory, settings)
    return engine


def stage_settings(
    name: str, study: Study, settings: SettingsOf, **single: Any
) -> dict[str, SettingsOf]:
    """Return stage -> settings of its jobs: those of runs, updated by its own table.

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
    """Read a table of the study file, overridden by the command line, and check it all at once."""
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
