"""What a backend sees and answers: a function of a request, or a command that leaves JSON."""

from __future__ import annotations

import functools
import importlib
import json
import math
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doe.design.runs import level_text
from doe.errors import DoeError, nearest
from doe.running.processes import end_by_signal, end_with_parent
from doe.store.requests import RunRequest
from doe.study.values import Level

METRICS_FILE = "metrics.json"
"""Where a command leaves its metrics, in its run's directory."""
Reply = Mapping[str, float]
Backend = Callable[["Request"], Reply]


@dataclass(frozen=True)
class Request:
    """One training run as its backend sees it."""

    factors: Mapping[str, Level]
    """Factor key -> level as given in the study file."""
    settings: Mapping[str, Any]
    seed: int
    device: str
    """"cpu" or "cuda:0"."""
    threads: int
    run_dir: Path
    """The run's own directory; anything may be written there."""
    resumed: bool
    """Whether an earlier attempt began: look for its checkpoint."""
    report: Callable[..., None]
    """``report(step, total, **metrics)`` shows progress."""


# Calling a backend ------------------------------------------------------------------------------


def resolve(name: str, command: tuple[str, ...] = ()) -> Backend:
    """Import the function that "module:function" names, or wrap a command.

    Raises
    ------
    DoeError
        If there is no such module or function; an error inside the module is passed on.
    """
    if name == "command":
        return functools.partial(run_command, command)
    module_name, _, attribute = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise DoeError(
            f"backend {name!r}: there is no module {error.name!r}; install it, or run doe from the "
            "directory that holds it"
        ) from error
    function = getattr(module, attribute, None)
    if not callable(function):
        near = nearest(attribute, [n for n in dir(module) if callable(getattr(module, n))])
        raise DoeError(f"backend {name!r}: {module_name} has no function {attribute!r}{near}")
    return function  # type: ignore[no-any-return]


def run_command(command: tuple[str, ...], request: Request) -> Reply:
    """Run a study's command, wait for it, and read the metrics that it leaves."""
    values = {key: level_text(level) for key, level in request.factors.items()}
    values |= {"seed": str(request.seed), "device": request.device}
    values |= {"threads": str(request.threads), "run_dir": str(request.run_dir)}
    metrics = request.run_dir / METRICS_FILE
    metrics.unlink(missing_ok=True)
    words = [part.format(**values) for part in command]
    try:
        code = subprocess.call(words, stdin=subprocess.DEVNULL, preexec_fn=end_with_parent)
    except OSError as error:
        raise DoeError(f"cannot start {words[0]!r}: {error.strerror}") from error
    if code < 0:
        end_by_signal(-code)  # as the command did: a crash is not a clean failure
    if code > 0:
        raise DoeError(f"the command ended with exit code {code}")
    try:
        return _numbers(json.loads(metrics.read_bytes()))
    except FileNotFoundError:
        raise DoeError(f"the command left no {METRICS_FILE} in its run directory") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DoeError(f"{METRICS_FILE} is no JSON object of numbers: {error}") from error


def _numbers(content: object) -> Reply:
    """Metrics as a command writes them; null is not a number, which is a divergence."""
    if not isinstance(content, dict):
        raise ValueError(f"expected an object, got {type(content).__name__}")
    for name, value in content.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ValueError(f"expected a number for {name}, got {value!r:.100}")
    return {name: math.nan if value is None else value for name, value in content.items()}


# Judging a reply --------------------------------------------------------------------------------


def checked_reply(reply: object, request: RunRequest) -> dict[str, float]:
    """Turn a backend's answer into floats by name, or raise DoeError saying what is wrong."""
    if not isinstance(reply, Mapping):
        raise DoeError(f"the backend returned {type(reply).__name__}; expected metrics by name")
    missing = [name for name in request.metrics if name not in reply]
    if missing:
        raise DoeError(
            f"the backend returned no {', '.join(missing)}; it returned "
            f"{', '.join(map(str, reply)) or 'nothing'}"
        )
    try:
        return {_plain(name): _number(value) for name, value in reply.items()}
    except (TypeError, ValueError) as error:
        raise DoeError(f"the backend returned a metric that is no number: {error}") from error


def _plain(name: object) -> str:
    return str(name).encode(errors="replace").decode()


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats
        return math.inf


def not_finite(metrics: Mapping[str, float], request: RunRequest) -> str:
    """Name the responses that are not finite numbers, or return an empty text."""
    names = [*request.metrics, *(name for name in request.further if name in metrics)]
    bad = [f"{name} is {metrics[name]}" for name in names if not math.isfinite(metrics[name])]
    return ", ".join(bad)
