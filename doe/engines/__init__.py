"""Engines start workers somewhere; the run directory decides what became of them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from doe.engines.base import Engine
from doe.errors import DoeError, nearest
from doe.study import Study

ENGINES = ("local",)


class Resources(NamedTuple):
    """What runs may use, as given on the command line."""

    gpus: str = ""
    """Numbers of GPUs, as in "0,1"."""
    per_gpu: int = 1
    cpu: int | None = None
    """Slots on the CPU, 0 for one per core; None if not asked for."""


def open_engine(name: str, study: Study, directory: Path, resources: Resources) -> Engine:
    """Make the engine of a name, or raise DoeError if there is none or it lacks something."""
    if name == "local":
        return _local(study, resources)
    raise DoeError(
        f"engine {name!r} is unknown{nearest(name, ENGINES)}; known: {', '.join(ENGINES)}"
    )


def _local(study: Study, resources: Resources) -> Engine:
    """Slots on the GPUs that are asked for, or on the cores; by default on all GPUs if any."""
    from doe.engines.local import LocalEngine, cpu_slots, gpu_slots
    from doe.provenance import ask_gpus

    if resources.gpus and resources.cpu is not None:
        raise DoeError("got both --gpus and --cpu; choose one of them")
    if resources.cpu is not None:
        return LocalEngine(study, cpu_slots(resources.cpu))
    there = ask_gpus()
    wanted = _numbers(resources.gpus) if resources.gpus else [gpu.number for gpu in there]
    if not wanted:
        return LocalEngine(study, cpu_slots())
    return LocalEngine(study, gpu_slots(wanted, resources.per_gpu, there))


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts) or len(set(parts)) < len(parts):
        raise DoeError(f"--gpus {text}: expected different numbers such as 0,1")
    return [int(part) for part in parts]
