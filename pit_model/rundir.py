"""What a run leaves in its directory beside its checkpoint, and weights in a file of their own."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import torch

from pit_model import checkpoint
from pit_model.config import Config
from pit_model.dataset import make_split
from pit_model.errors import PitError
from pit_model.metrics import choose_epochs, epochs_to_keep
from pit_model.network import Network
from pit_model.trainer import CHECKPOINT, Weights, evaluate, make_forward

RUN = "run.json"
"""Name of the file with the settings and the seed of a run."""
METRICS = "metrics.json"
"""Name of the file with the numbers of a finished run."""
SHIPPED = Path(__file__).parent / "data" / "camera.pt"
"""Weights that ship with the package, trained by the preset `camera`."""


class Trained(NamedTuple):
    """A finished or partial run on disk."""

    config: Config
    seed: int
    history: list[dict[str, float]]
    """Validation metrics of each finished epoch."""
    kept: dict[int, Weights]
    """Weights of the chosen epochs and of the last one."""


def write_run(run_dir: Path, config: Config, seed: int) -> None:
    """Write the settings and the seed of a run, for `read_run`."""
    write_json(run_dir / RUN, {"seed": seed, "settings": config.as_dict()})


def read_run(run_dir: Path) -> tuple[Config, int]:
    """Read the settings and the seed of a run."""
    path = run_dir / RUN
    try:
        content = json.loads(path.read_text())
        return Config.from_settings(content["settings"]), int(content["seed"])
    except FileNotFoundError:
        raise PitError(
            f"{run_dir} is not a run: there is no {RUN}; make one with `pit train --out {run_dir}`"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise PitError(f"{path} is damaged: {error}; train the run again") from error


def read_metrics(run_dir: Path) -> dict[str, float]:
    """Read the numbers of a finished run."""
    path = run_dir / METRICS
    try:
        values: dict[str, float] = json.loads(path.read_text())
    except FileNotFoundError:
        raise PitError(f"{run_dir} is not finished: there is no {METRICS} yet") from None
    except ValueError as error:
        raise PitError(f"{path} is damaged: {error}; train the run again") from error
    return values


def read_trained(run_dir: Path) -> Trained:
    """Read a run with the weights of its chosen epochs."""
    config, seed = read_run(run_dir)
    path = run_dir / CHECKPOINT
    if not path.exists():
        raise PitError(f"{run_dir} has finished no epoch yet: there is no {CHECKPOINT}")
    state = checkpoint.load(path, checkpoint.fingerprint(config, seed))
    return Trained(config, seed, state["history"], state["kept"])


def network_at(trained: Trained, epoch: int, device: torch.device) -> Network:
    """Build the network of a run as it was after an epoch that some metric chose."""
    network = Network(trained.config)
    network.load_state_dict(trained.kept[epoch])
    return network.to(device)


def evaluate_run(trained: Trained, split: str, device: torch.device) -> dict[str, float]:
    """Evaluate a split at the epoch that each metric chose on the validation set."""
    config = trained.config
    data = make_split(config, split, device)
    chosen = choose_epochs(trained.history)
    values = {}
    for epoch in epochs_to_keep(chosen):
        network = network_at(trained, epoch, device)
        values[epoch] = evaluate(network, make_forward(network, config), data)
    return {name: values[epoch][name] for name, epoch in chosen.items()}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(beside, path)


def read_weights(path: Path) -> tuple[Config, Weights]:
    """Read the settings and weights of a file or of a run's directory."""
    if path.is_dir():
        return best_weights(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        return Config.from_settings(content["settings"]), content["weights"]
    except FileNotFoundError:
        raise PitError(
            f"{path} does not exist; expected a file of weights or the directory of a trained run"
        ) from None
    except (UnpicklingError, RuntimeError, EOFError, KeyError, TypeError) as error:
        raise PitError(
            f"{path} contains no weights ({type(error).__name__}); write one with `pit weights RUN`"
        ) from error


def best_weights(run_dir: Path) -> tuple[Config, Weights]:
    """Take the epoch of a run whose finest soft positions are best on the validation set."""
    trained = read_trained(run_dir)
    best = choose_epochs(trained.history).get(f"B{trained.config.image_size}")
    if best is None:
        raise PitError(f"{run_dir} has no epoch with a finite position error; train it again")
    return trained.config, trained.kept[best]


def write_weights(run_dir: Path, path: Path) -> None:
    """Write the best weights of a run as one file."""
    config, weights = best_weights(run_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"settings": config.as_dict(), "weights": weights}, path)
