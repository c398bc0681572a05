"""Weights in a file of their own: what a tracker needs of a training."""

from pathlib import Path
from pickle import UnpicklingError

import torch
from torch import Tensor

from pit_model.config import Config
from pit_model.errors import PitError
from pit_model.rundir import read_trained
from pit_model.selection import choose_epochs

SHIPPED = Path(__file__).parent / "data" / "camera.pt"
"""Weights that come with the package, trained by the preset `camera`."""

Weights = dict[str, Tensor]


def read_weights(path: Path) -> tuple[Config, Weights]:
    """Read the settings and weights of a file or of a run's directory."""
    if path.is_dir():
        return best_weights(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        return Config.from_settings(content["settings"]), content["weights"]
    except FileNotFoundError:
        raise PitError(
            f"{path} is not there; expected a file of weights or the directory of a trained run"
        ) from None
    except (UnpicklingError, RuntimeError, EOFError, KeyError, TypeError) as error:
        raise PitError(
            f"{path} holds no weights ({type(error).__name__}); write one with `pit weights RUN`"
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
