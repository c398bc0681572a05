"""The function that a study calls: one training run from a request to its metrics."""

import os
from collections.abc import Mapping
from math import nan
from pathlib import Path
from typing import Any, Protocol

import torch

from pit_model.config import Config
from pit_model.errors import PitError, nearest
from pit_model.metrics import metric_names
from pit_model.rundir import METRICS, write_json, write_run
from pit_model.trainer import EpochListener, train

COMPILED = ".compiled"
"""Directory of a study for the compiled network of torch.compile."""
NAMED = "setting"
"""Name of a factor whose levels are several settings each, passed as settings."""
STREAMS = ("init", "data")
"""Streams of seeds that a study may vary: weights and order of batches, and the videos."""


class Request(Protocol):
    """The request of a run; callers pass any object of this form."""

    @property
    def factors(self) -> Mapping[str, Any]:
        """Levels of the factors, A to F or any other setting."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The other settings; `preset` gives the rest."""

    @property
    def seed(self) -> int:
        """Seed of the weights and of the order of the batches."""

    @property
    def seeds(self) -> Mapping[str, int]:
        """Seeds by stream, if there are several: `init` instead of `seed`, and `data`."""

    @property
    def device(self) -> str:
        """``cpu``, ``cuda``, ``cuda:1``, ``xpu:0`` or ``mps``."""

    @property
    def threads(self) -> int:
        """Threads of the CPU to compute with."""

    @property
    def run_dir(self) -> Path:
        """The run's own directory; a checkpoint of the same run in it is continued."""

    @property
    def report(self) -> EpochListener:
        """Called after each epoch."""


def run(request: Request) -> dict[str, float]:
    """Train one configuration.

    Returns
    -------
    The 15 test metrics (not a number where an epoch could not be chosen) and what `trainer.train`
    tells beside them: the chosen epochs, the values after the last epoch, seconds, divergence.
    """
    factors = {key: level for key, level in request.factors.items() if key != NAMED}
    config = Config.from_settings(seeded_settings(request), factors)
    seed = request.seeds.get("init", request.seed)
    device = find_device(request.device)
    torch.set_num_threads(request.threads)
    if config.compile:  # what one run of the study compiled, the others read
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(request.run_dir.parent / COMPILED))
    write_run(request.run_dir, config, seed)
    values = train(config, seed, device, request.run_dir, request.report)
    answer = {**dict.fromkeys(metric_names(config.scales), nan), **values}
    write_json(request.run_dir / METRICS, answer)
    return answer


def seeded_settings(request: Request) -> dict[str, Any]:
    """Return the settings with the seed of the stream `data`, if there is one, as `data_seed`."""
    settings = dict(request.settings)
    for name in request.seeds:
        if name not in STREAMS:
            raise PitError(
                f"stream of seeds {name!r} is unknown{nearest(name, STREAMS)}; expected init "
                "(weights and order of batches) and data"
            )
    if "data" in request.seeds:
        if "data_seed" in settings:
            raise PitError(
                f"the stream data is {request.seeds['data']} and the setting data_seed "
                f"{settings['data_seed']}; remove the setting"
            )
        settings["data_seed"] = request.seeds["data"]
    return settings


def find_device(name: str) -> torch.device:
    """Return a device if present, or raise an error that lists those present."""
    there = ["cpu"]
    there += [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    there += [f"xpu:{i}" for i in range(torch.xpu.device_count())]
    there += ["mps"] if torch.backends.mps.is_available() else []
    wanted = f"{name}:0" if name in ("cuda", "xpu") else name
    if wanted not in there:
        raise PitError(f"device {name!r} was not found; this machine has {', '.join(there)}")
    return torch.device(wanted)
