"""Engines start workers somewhere; the run directory decides what became of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from doe.errors import DoeError, nearest
from doe.running.engines.base import Engine
from doe.study.values import Study

ENGINES = {
    "local": ("gpus", "per_gpu", "cpu"),
    "slurm": ("partition", "account", "time", "gres", "cpus", "mem", "jobs", "runs_per_job"),
    "ray": ("ray_address", "gpus_per_run", "cpus", "jobs"),
}
"""Each engine, and the resources that it understands."""


class Resources(NamedTuple):
    """What runs may use, as given on the command line."""

    gpus: str = ""
    """Numbers of GPUs, as in "0,1"."""
    per_gpu: int = 1
    cpu: int | None = None
    """Slots on the CPU, 0 for one per core; None if not asked for."""
    cpus: int | None = None
    """Cores of each run on a cluster."""
    jobs: int | None = None
    """Most runs or jobs at once on a cluster."""
    partition: str | None = None
    account: str | None = None
    time: str | None = None
    gres: str | None = None
    mem: str | None = None
    runs_per_job: int | None = None
    ray_address: str | None = None
    gpus_per_run: float | None = None


def open_engine(name: str, study: Study, directory: Path, resources: Resources) -> Engine:
    """Make the engine of a name, or raise DoeError if there is none or it lacks something."""
    if name not in ENGINES:
        raise DoeError(
            f"engine {name!r} is unknown{nearest(name, ENGINES)}; known: {', '.join(ENGINES)}"
        )
    given = {
        key: value
        for key, value in resources._asdict().items()
        if value != Resources._field_defaults[key]
    }
    for key in given:
        if key not in ENGINES[name]:
            whose = " or ".join(engine for engine, keys in ENGINES.items() if key in keys)
            raise DoeError(
                f"--{key.replace('_', '-')} is for --engine {whose}; this is --engine {name}, "
                "leave it out"
            )
    if name == "slurm":
        return _slurm(study, directory, given)
    return _ray(given) if name == "ray" else _local(study, resources)


def _slurm(study: Study, directory: Path, given: dict[str, Any]) -> Engine:
    from doe.running.engines.slurm import SlurmEngine
    from doe.running.engines.slurm_settings import slurm_settings

    return SlurmEngine(study, directory, slurm_settings(study.slurm, given))


def _ray(given: dict[str, Any]) -> Engine:
    from doe.running.engines.ray import RayEngine, RaySettings

    names = {"ray_address": "address", "gpus_per_run": "gpus"}
    return RayEngine(RaySettings(**{names.get(key, key): given[key] for key in given}))


def _local(study: Study, resources: Resources) -> Engine:
    """Slots on the GPUs that are asked for, or on the cores; by default on all GPUs if any."""
    from doe.running.engines.local import LocalEngine, cpu_slots, gpu_slots
    from doe.running.provenance import ask_gpus

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
