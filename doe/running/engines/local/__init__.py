"""The local engine: slots on this machine's GPUs or cores, each with a warm parent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from doe.errors import DoeError
from doe.running.engines import Slot
from doe.running.provenance import Gpu, ask_gpus, cpu_name
from doe.study.values import Study

if TYPE_CHECKING:
    from doe.running.engines.local.engine import LocalEngine

DETACHES = False


class Settings(msgspec.Struct, frozen=True):
    """Settings of runs on this machine."""

    gpus: Annotated[str, Meta(description="GPUs to use, such as 0,1; one slot each.")] = ""
    per_gpu: Annotated[int, Meta(description="runs at once on each GPU.", ge=1)] = 1
    cpu: Annotated[
        int | None,
        Meta(description="slots on the CPU; 0 for as many as there are cores [default]."),
    ] = None


def problem(key: str, value: Any) -> str:
    """Return what is wrong with a value, or an empty text."""
    if key == "cpu":
        return "" if value >= 0 else "expected 0 for as many as there are cores, or more"
    parts = [part.strip() for part in value.split(",")] if key == "gpus" else []
    different = all(part.isdecimal() for part in parts) and len(set(parts)) == len(parts)
    return "" if different else "expected different numbers such as 0,1"


def open(study: Study, _directory: Path, settings: Settings) -> LocalEngine:
    """Open slots on the given GPUs or cores; by default on all GPUs if any."""
    from doe.running.engines.local.engine import LocalEngine

    if own := [name for name, stage in study.stages.items() if stage.engines.get("local")]:
        raise DoeError(
            f"stages.{own[0]}.local: the local engine runs stages in the slots of runs; remove it"
        )
    if settings.gpus and settings.cpu is not None:
        raise DoeError("got both gpus and cpu; choose one of them")
    if settings.cpu is not None:
        return LocalEngine(study, cpu_slots(study.threads, settings.cpu))
    gpus = ask_gpus()
    numbers = [int(number) for number in settings.gpus.split(",") if number]
    wanted = numbers or [gpu.number for gpu in gpus]
    if not wanted:
        return LocalEngine(study, cpu_slots(study.threads))
    return LocalEngine(study, gpu_slots(wanted, settings.per_gpu, gpus))


def usable_cores() -> int:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_slots(threads: int, number: int = 0) -> tuple[Slot, ...]:
    """Return as many slots as there are cores for runs with so many threads, unless a number is
    given."""
    kind, slots = cpu_name(), number or max(1, usable_cores() // threads)
    return tuple(Slot(f"cpu{i}", kind=kind) for i in range(slots))


def gpu_slots(wanted: Sequence[int], per_gpu: int, gpus: Sequence[Gpu]) -> tuple[Slot, ...]:
    """Return slots on some GPUs, `per_gpu` on each; DoeError lists the GPUs that exist."""
    kinds = {gpu.number: gpu.name for gpu in gpus}
    if missing := [number for number in wanted if number not in kinds]:
        listing = ", ".join(f"{gpu.number} ({gpu.name})" for gpu in gpus) or "none"
        raise DoeError(
            f"there is no GPU {', '.join(map(str, missing))}; nvidia-smi lists: {listing}. "
            "Choose among them, or run on the CPU"
        )
    return tuple(
        Slot(
            f"gpu{number}" if per_gpu == 1 else f"gpu{number}.{share}",
            device="cuda:0",
            kind=kinds[number],
            group=f"gpu{number}",
        )
        for number in wanted
        for share in range(1, per_gpu + 1)
    )
