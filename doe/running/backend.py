"""Interface to backends: a function of a request, or a command that writes its metrics."""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from doe.errors import DoeError, nearest
from doe.store.files import encodable
from doe.store.requests import RunRequest
from doe.study.command import OUT, flat_settings, stage_placeholders, used_pieces
from doe.study.values import Level, seed_placeholders

if TYPE_CHECKING:
    from doe.running.program import Program

Reply = Mapping[str, float]
Function = Callable[["Request"], Reply]


@dataclass(frozen=True)
class Request:
    """One training run as its backend sees it."""

    factors: Mapping[str, Level]
    """Factor key -> level as given in the study file."""
    settings: Mapping[str, Any]
    seed: int
    """The seed of the run, or that of the first stream if the study has several."""
    device: str
    """"cpu" or "cuda:0"."""
    threads: int
    run_dir: Path
    """The run's own directory; anything may be written there."""
    resumed: bool
    """Whether an earlier attempt began: look for its checkpoint."""
    report: Callable[..., None]
    """``report(step, total, **metrics)`` shows progress."""
    seeds: Mapping[str, int] = field(default_factory=dict)
    """Stream -> its seed, if the study has several: ``seeds["data"]``."""
    stages: Mapping[str, Path] = field(default_factory=dict)
    """Stage -> the directory of its output, read-only: ``stages["tokens"]``."""
    should_stop: Callable[[], bool] = bool
    """Return whether the run should end early: save a checkpoint and return None. A backend that
    calls this is not interrupted by SIGTERM; any other ends at once."""


Value = TypeVar("Value")


class Noted(dict[str, Value]):
    """Levels or stages by name that record which ones a backend reads; otherwise a plain
    dictionary."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        super().__init__(values)
        self._unread = dict.fromkeys(values)

    @property
    def unread(self) -> tuple[str, ...]:
        """Return the names that were never read."""
        return tuple(self._unread)

    def __getitem__(self, key: str) -> Value:
        self._unread.pop(key, None)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the level of a factor."""
        self._unread.pop(key, None)
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:  # so that copies read each level by `[]`
        return super().__iter__()

    def values(self) -> Any:
        """Return all levels, which then count as read."""
        self._unread.clear()
        return super().values()

    def items(self) -> Any:
        """Return all factors with their levels, which then count as read."""
        self._unread.clear()
        return super().items()


# Calling a backend ------------------------------------------------------------------------------


def resolve(name: str, command: tuple[str, ...] = ()) -> Backend:
    """Import the function that "module:function" names, or wrap a command.

    Raises
    ------
    DoeError
        If there is no such module or function; an error inside the module is passed on.
    """
    if name == "command":
        return CommandBackend(command)
    module_name, _, attribute = name.partition(":")
    with contextlib.suppress(OSError):
        if not {"", os.getcwd()} & set(sys.path):
            sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise DoeError(
            f"backend {name!r}: there is no module {error.name!r}; install it, or run doe from "
            "the directory that contains it"
        ) from error
    function = getattr(module, attribute, None)
    if not callable(function):
        near = nearest(attribute, [n for n in dir(module) if callable(getattr(module, n))])
        raise DoeError(f"backend {name!r}: {module_name} has no function {attribute!r}{near}")
    return function  # type: ignore[no-any-return]


class CommandBackend:
    """A study's command: run it, wait for it, and read its metrics."""

    def __init__(self, command: tuple[str, ...]) -> None:
        import doe.running.command  # done once, before runs are forked
        import doe.running.program

        self._module, self._command = doe.running.command, command
        self._start = doe.running.program.Program
        self._program: Program | None = None
        self.leave: Callable[[], None] = lambda: None
        """Called when the program has ended well, before its metrics are read."""

    def stand_by(self) -> None:
        """Fork the process of the program in advance."""
        self._program = self._start()

    def rehearse(self, request: RunRequest) -> None:
        """Prepare a call without making it."""
        pieces = used_pieces(self._command, {}, lambda _: None)
        values = {str(piece.name): "" for piece in pieces}
        self._module.preparation(self._command, values, request, Path("run"), print)

    def run(self, request: Request, planned: RunRequest) -> Reply:
        """Run the command with the values of a request in place of its placeholders."""
        seeds = zip(seed_placeholders(request.seeds), request.seeds.values(), strict=True)
        stages = zip(stage_placeholders(request.stages), request.stages.values(), strict=True)
        own: dict[str, Level] = {
            "seed": request.seed,
            "device": request.device,
            "threads": request.threads,
            **dict(seeds),
            **{name: str(path) for name, path in stages},
        }
        return self._module.run_program(
            self._command,
            {**flat_settings(request.settings), **request.factors, **own},
            planned,
            request.run_dir,
            request.report,
            request.should_stop,
            self._program,
            self.leave,
        )


Backend = Function | CommandBackend


class CheckedReply(NamedTuple):
    """A backend's reply to a request, after checks."""

    metrics: dict[str, float]
    not_finite: str
    """Which responses are not finite numbers, or an empty text."""
    unread: tuple[str, ...]
    """Factors and stages that a function did not read."""


def call(
    backend: Backend,
    request: RunRequest,
    run_dir: Path,
    device: str,
    report: Callable[..., None],
    resumed: bool = False,
    should_stop: Callable[[], bool] = bool,
) -> CheckedReply:
    """Pass a run's request to its backend and check the reply.

    Raises
    ------
    DoeError
        If the answer is invalid; the message says why.
    """
    factors = Noted(request.factors)
    stages = Noted({n: run_dir.parent / run_id / OUT for n, run_id in request.stages.items()})
    if request.stage:
        (run_dir / OUT).mkdir(exist_ok=True)
        if request.backend != "command":
            run_dir = run_dir / OUT
    handed = Request(
        factors=factors,
        settings=request.settings,
        seed=request.seed,
        seeds=request.seeds,
        stages=stages,
        device=device,
        threads=request.threads,
        run_dir=run_dir,
        resumed=resumed,
        report=report,
        should_stop=should_stop,
    )
    if isinstance(backend, CommandBackend):
        metrics = _checked(backend.run(handed, request), request)
    else:
        metrics = _checked(backend(handed), request)
    unread = (*factors.unread, *stage_placeholders(stages.unread))
    return CheckedReply(metrics, _not_finite(metrics, request), unread)


def _checked(reply: object, request: RunRequest) -> dict[str, float]:
    """Turn a backend's reply into floats by name, or raise DoeError with what is wrong."""
    if request.stage and not isinstance(reply, Mapping):
        return {}  # its output is its reply
    if not isinstance(reply, Mapping):
        raise DoeError(f"the backend returned {type(reply).__name__}; expected metrics by name")
    missing = [name for name in request.metrics if name not in reply]
    if missing:
        raise DoeError(
            f"the backend returned no {', '.join(missing)}; it returned "
            f"{', '.join(map(str, reply)) or 'nothing'}"
        )
    try:
        return {encodable(str(name)): _number(value) for name, value in reply.items()}
    except (TypeError, ValueError) as error:
        raise DoeError(f"the backend returned a metric that is not a number: {error}") from error


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats
        return math.inf


def _not_finite(metrics: Mapping[str, float], request: RunRequest) -> str:
    """Name the responses that are not finite numbers, or return an empty text."""
    names = [*request.metrics, *(name for name in request.further if name in metrics)]
    bad = [f"{name} is {metrics[name]}" for name in names if not math.isfinite(metrics[name])]
    return ", ".join(bad)
